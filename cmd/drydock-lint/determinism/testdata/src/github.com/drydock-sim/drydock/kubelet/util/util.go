package util

var Shared int
