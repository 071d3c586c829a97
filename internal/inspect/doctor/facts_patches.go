package doctor

import "github.com/swdt-dev/swdt/internal/platform"

// Switch is a value of the registry by which a component of Windows changes its behaviour; see package switches.
type Switch struct {
	Key   string `json:"key"`
	Name  string `json:"name"`
	Type  string `json:"type"`  // REG_DWORD
	Value string `json:"value"` // a number in decimal
}

// UpdatePackage is a package of an update of Windows, as Windows' servicing lists it.
type UpdatePackage struct {
	Name    string `json:"name"`    // Package_for_RollupFix
	Version string `json:"version"` // 20348.2849.1.9
	State   uint64 `json:"state"`   // CurrentState; 112: installed
}

// Registration is the registration of a service or a driver in the registry.
type Registration struct {
	Name    string `json:"name"`
	Driver  bool   `json:"driver"`
	Start   string `json:"start"` // boot, system, auto, delayed, manual, disabled
	Image   string `json:"image"` // the value ImagePath, without secrets
	Account string `json:"account"`
	// Problem is why the registration could not be read, so that only the name is known; or empty.
	Problem string `json:"problem,omitempty"`
}

// HashedFile is a file by its hash.
type HashedFile struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"` // "": there is no such file
	Bytes  int64  `json:"bytes"`
}

// ConfigFile is a configuration file of a node's program, by its hash and its settings.
type ConfigFile struct {
	Path    string `json:"path"`    // "": it is unknown which files the program has
	Program string `json:"program"` // containerd, kubelet, CNI
	SHA256  string `json:"sha256"`  // "": it could not be read
	// Settings are the values of the file by their paths, such as plugins.io.containerd.cri.v1.images.snapshotter, without
	// secrets. The path of an element of a list has its index.
	Settings map[string]string `json:"settings"`
	// Problem is why the settings are not complete; or empty.
	Problem string `json:"problem,omitempty"`
}

// Patches are the facts that comparisons of nodes read, and few rules. Most are gathered only if Sources.Everything asks for
// them, since they take hundreds of calls.
type Patches struct {
	Switches      Fact[[]Switch]                         `json:"registrySwitches"` // always gathered
	Packages      Fact[[]UpdatePackage]                  `json:"updatePackages"`
	Registrations Fact[[]Registration]                   `json:"registeredServices"` // services and drivers
	Drivers       Fact[[]HashedFile]                     `json:"driverFiles"`
	Features      Fact[map[string]platform.FeatureState] `json:"optionalFeatures"`
	Binaries      Fact[[]HashedFile]                     `json:"programFiles"`
	Configuration Fact[[]ConfigFile]                     `json:"configurationFiles"`
}
