package kubelet

import "k8s.io/apimachinery/pkg/types"

type uidType = types.UID

func uidOf(s string) types.UID { return types.UID(s) }
