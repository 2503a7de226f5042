package randomness

import (
	crand "crypto/rand" // want `import of crypto/rand: draw with Loop.Uint64`
	"crypto/sha256"
	"math"
	_ "math/rand"  // want `import of math/rand:`
	"math/rand/v2" // want `import of math/rand/v2`

	_ "github.com/google/uuid"            // want `import of github.com/google/uuid`
	_ "k8s.io/apimachinery/pkg/util/rand" // want `import of k8s.io/apimachinery/pkg/util/rand`
	_ "k8s.io/apimachinery/pkg/util/uuid" // want `import of k8s.io/apimachinery/pkg/util/uuid`
)

func f() {
	_ = rand.Int()
	_ = crand.Text()
	_ = sha256.Sum256(nil)
	_ = math.Abs(1)
}
