package fakecri

import _ "github.com/drydock-sim/drydock/kubelet/util" // want `fakecri imports kubelet/util, which stands higher`
