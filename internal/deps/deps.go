//go:build deps

// Package deps pins modules while the tree is being laid out.
package deps

import (
	_ "github.com/google/cel-go/cel"
	_ "github.com/google/cel-go/ext"
	_ "github.com/onsi/ginkgo/v2/ginkgo"
	_ "github.com/onsi/gomega"
	_ "github.com/spf13/cobra"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/tools/go/analysis/analysistest"
	_ "golang.org/x/tools/go/analysis/multichecker"
	_ "golang.org/x/tools/go/analysis/unitchecker"
	_ "golang.org/x/term"
	_ "google.golang.org/grpc/status"
	_ "k8s.io/apiserver/pkg/cel/library"
	_ "k8s.io/apimachinery/pkg/util/strategicpatch"
	_ "gopkg.in/evanphx/json-patch.v4"
	_ "k8s.io/client-go/tools/record"
	_ "k8s.io/component-base/version"
	_ "k8s.io/component-helpers/scheduling/corev1"
	_ "k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	_ "k8s.io/component-helpers/resource"
	_ "k8s.io/component-helpers/node/util"
	_ "k8s.io/cri-api/pkg/apis"
	_ "k8s.io/kubelet/config/v1beta1"
	_ "sigs.k8s.io/yaml"
	_ "sigs.k8s.io/json"
	_ "github.com/invopop/jsonschema"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/agext/levenshtein"
	_ "github.com/distribution/reference"
	_ "go.uber.org/goleak"
	_ "pgregory.net/rapid"
)
