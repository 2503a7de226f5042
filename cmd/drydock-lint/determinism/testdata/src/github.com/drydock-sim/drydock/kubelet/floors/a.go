package floors

import (
	_ "github.com/drydock-sim/drydock/fakecri" // want `kubelet and fakecri meet through interfaces only`
	_ "github.com/drydock-sim/drydock/ground/loop"
	_ "github.com/drydock-sim/drydock/ground/trace"
	_ "github.com/drydock-sim/drydock/kubelet/app" // want `kubelet/floors, which is deterministic, imports kubelet/app, which is an edge`
	_ "github.com/drydock-sim/drydock/kubelet/util"
	_ "github.com/drydock-sim/drydock/sim"           // want `kubelet/floors imports sim, which stands higher`
	_ "github.com/drydock-sim/drydock/sim/apiserver" // want `kubelet/floors imports sim/apiserver, which stands higher`
	_ "k8s.io/kubernetes/pkg/kubelet"                // want `import of k8s.io/kubernetes/pkg/kubelet: it is no library`
)
