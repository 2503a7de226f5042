package envtest

import _ "sigs.k8s.io/controller-runtime/pkg/client" // whose module's suites are run
