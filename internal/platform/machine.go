package platform

import (
	"context"
	"time"
)

// Facts describe the machine. Sizes are bytes.
type Facts struct {
	Hostname      string
	Product       string // such as Windows Server 2022 Datacenter
	Build         string // such as 20348.2849 (build.UBR)
	Architecture  string // amd64, arm64 (as GOARCH)
	BootID        string // differs after each boot
	Uptime        time.Duration
	CPUs          int
	Memory        uint64
	MemoryFree    uint64
	SystemDrive   string    // C:
	DiskFree      uint64    // on the system drive
	PendingReboot []string  // reasons for a pending reboot; empty if none is pending
	Elevated      bool      // whether the agent may change the machine
	Simulated     string    // "" on Windows, "wine" under Wine, "simulated" in memory
	Time          time.Time // the machine's clock
	// Virtualization reports whether the processor and its firmware can run
	// Hyper-V. It is also false while a hypervisor is running.
	Virtualization bool
}

// Machine is the computer as a whole.
type Machine interface {
	Facts(ctx context.Context) (Facts, error)
	// Reboot requests a restart and returns before it happens.
	Reboot(ctx context.Context, reason string) error
	// ShuttingDown reports whether Windows has begun to shut down or to restart: services end because of that, and none
	// starts any more.
	ShuttingDown(ctx context.Context) (bool, error)
	// BroadcastEnvironment notifies running programs that the machine's
	// environment variables have changed.
	BroadcastEnvironment(ctx context.Context) error
}

// RegistryType is a registry value's type.
type RegistryType string

const (
	RegistryString       RegistryType = "REG_SZ"
	RegistryExpandString RegistryType = "REG_EXPAND_SZ"
	RegistryMultiString  RegistryType = "REG_MULTI_SZ"
	RegistryDWord        RegistryType = "REG_DWORD"
	RegistryQWord        RegistryType = "REG_QWORD"
	RegistryBinary       RegistryType = "REG_BINARY"
)

// RegistryValue is a value with its name and type. Type determines which field holds the data.
type RegistryValue struct {
	Name    string // empty: the key's default value
	Type    RegistryType
	String  string   // REG_SZ, REG_EXPAND_SZ (unexpanded)
	Strings []string // REG_MULTI_SZ
	Integer uint64   // REG_DWORD, REG_QWORD
	Binary  []byte   // REG_BINARY and other types
}

// Registry is the Windows registry. Keys begin with HKLM\, HKCU\, HKU\ or HKCR\; names compare
// without case. If a key or value is missing, the error is fault.ErrNotExist.
type Registry interface {
	Get(key, name string) (RegistryValue, error)
	// Set writes a value and creates the key and its parents if needed.
	Set(key string, value RegistryValue) error
	// Delete removes one value.
	Delete(key, name string) error
	// DeleteKey removes a key with everything below it.
	DeleteKey(key string) error
	// List returns a key's values and the names of its subkeys, sorted.
	List(key string) (values []RegistryValue, keys []string, err error)
}

// FeatureState is the state of a Windows optional feature.
type FeatureState string

const (
	FeatureEnabled        FeatureState = "enabled"
	FeatureDisabled       FeatureState = "disabled"
	FeatureEnablePending  FeatureState = "enablePending"  // enabled after the next reboot
	FeatureDisablePending FeatureState = "disablePending" // disabled after the next reboot
)

// Features are Windows optional features (DISM).
type Features interface {
	// State returns the state of one feature. If this Windows does not have the feature, the
	// error is fault.ErrNotExist.
	State(ctx context.Context, name string) (FeatureState, error)
	// Enable enables a feature and all features that it needs. Disable disables a feature.
	Enable(ctx context.Context, name string) (rebootRequired bool, err error)
	Disable(ctx context.Context, name string) (rebootRequired bool, err error)
}

// FirewallRule is one rule of Windows Defender Firewall.
type FirewallRule struct {
	Name      string // name as displayed; a resource id (@FirewallAPI.dll,-28775) if the name is localised
	Group     string // resource id or name of the group, if any
	Enabled   bool
	Inbound   bool
	Allow     bool
	Protocol  string // tcp, udp, icmpv4, icmpv6, any, or a number
	Ports     string // local ports: 10250, 8000-8100, or several with commas; empty: any
	Program   string
	Profiles  string // any, or one or more of domain,private,public
	Addresses string // remote addresses; empty: any
}

// Firewall is Windows Defender Firewall.
type Firewall interface {
	Rules(ctx context.Context) ([]FirewallRule, error)
	// Add creates a rule, and replaces all rules of the same name.
	Add(ctx context.Context, rule FirewallRule) error
	// Remove deletes every rule of that name. If no rule has the name, the error is
	// fault.ErrNotExist.
	Remove(ctx context.Context, name string) error
	// EnableGroup turns all rules of a group, named by its resource id, on or off.
	EnableGroup(ctx context.Context, group string, enabled bool) error
}
