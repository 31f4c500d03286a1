package main

import (
	"fmt"
	"runtime/debug"
)

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run() error {
	fmt.Println("tidemark", version())
	return nil
}

// version is the module's version where it was installed as such, and else the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return "devel-" + setting.Value[:min(12, len(setting.Value))]
		}
	}
	return "devel"
}
