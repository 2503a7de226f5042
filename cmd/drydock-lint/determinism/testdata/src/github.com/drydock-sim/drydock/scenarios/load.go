package scenarios

import "os"

func load() { _, _ = os.ReadFile("x.yaml") }
