package klog

type Logger struct{}

func Infof(format string, args ...any) {}
