// Package containerdconfig makes the configuration of a containerd out of the one
// that this containerd generates by itself (`containerd.exe config default`) and
// of what the node file wishes.
package containerdconfig

// Wishes are what the configuration is to say. Empty ones leave containerd's own.
type Wishes struct {
	PauseImage string
	CNIBinDir  string
	CNIConfDir string
	LogLevel   string
	Root       string
	State      string
	// Pipe is the address of containerd's API, \\.\pipe\containerd-containerd.
	Pipe string
	// User is the node file's TOML. It is merged last, and wins.
	User []byte
}

// Info is what was found out on the way.
type Info struct {
	// ConfigVersion of containerd's configuration: 2, 3 or 4.
	ConfigVersion int
	// Warnings are about user TOML that this containerd will not look at.
	Warnings []string
}

// Merge is the configuration: deterministic, complete, TOML.
func Merge(defaults []byte, w Wishes) ([]byte, Info, error) { panic("being written") }

// Equal is whether two configurations say the same; false where one is no TOML.
func Equal(a, b []byte) bool { panic("being written") }
