package apiserver

import _ "github.com/drydock-sim/drydock/fakecri" // want `sim/apiserver and fakecri meet through interfaces only`
