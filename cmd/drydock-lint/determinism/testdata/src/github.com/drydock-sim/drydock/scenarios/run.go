package scenarios

import "os"

func run() {
	_, _ = os.ReadFile("x.yaml") // want `use of os.ReadFile`
	go run()                     // want `a go statement`
}
