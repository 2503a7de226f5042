package sim

import (
	_ "github.com/drydock-sim/drydock/fakecri"
	_ "github.com/drydock-sim/drydock/sim/apiserver"
)
