// Package buildinfo describes this build of swdt and the agent inside it, as
// `swdt version` prints them.
package buildinfo

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Build is the result of `swdt version`.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"` // built from a tree with uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Agent    Agent  `json:"agent"`
}

// Agent is the agent inside swdt.
type Agent struct {
	Hash      string `json:"hash"` // SHA-256; "": no agent is embedded
	SizeBytes int64  `json:"sizeBytes"`
}

// New returns the description of this build. If version or commit is "", New takes it from
// Go's build information.
func New(version, commit string, agent agentbin.Agent) Build {
	b := Build{
		Version: version, Commit: commit,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Agent: Agent{Hash: agent.Hash, SizeBytes: agent.Size},
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		if b.Version == "" && build.Main.Version != "(devel)" {
			b.Version = build.Main.Version
		}
		for _, setting := range build.Settings {
			switch {
			case setting.Key == "vcs.revision" && b.Commit == "":
				b.Commit = setting.Value
			case setting.Key == "vcs.modified":
				b.Modified = setting.Value == "true"
			}
		}
	}
	b.Version, b.Commit = cmp.Or(b.Version, "devel"), cmp.Or(b.Commit, "unknown")
	return b
}

// WriteText writes the build for people.
func (b Build) WriteText(w *ui.Page) error {
	agent := "none inside: swdt builds it with Go when a node needs it (`make build` puts it inside)"
	if b.Agent.Hash != "" {
		agent = fmt.Sprintf("%s, %s", b.Agent.Hash, ui.Size(b.Agent.SizeBytes))
	}
	changed := ""
	if b.Modified {
		changed = " with changes"
	}
	return ui.Lines(w, [][]string{
		{"swdt", b.Version},
		{"commit", b.Commit + changed},
		{"go", b.Go + " " + b.Platform},
		{"agent", agent},
	})
}
