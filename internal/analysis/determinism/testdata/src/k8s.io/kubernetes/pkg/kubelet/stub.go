package kubelet
