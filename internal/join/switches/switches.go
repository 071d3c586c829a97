// Package switches knows the values of the registry by which components of Windows change their behaviour, and the
// installers of nodes that are known to set them.
//
// Microsoft publishes the meaning of few of these values. The table says who sets a value, since when and where that is
// published. It gives no value a meaning without a source.
//
//   - switches.go: the keys, and the search for the installers of a value
//   - table.go: the installers, with their sources
package switches

import (
	"slices"
	"strings"
)

// Keys of the registry.
const (
	// Policy has the overrides of features by policy. The name of a value is the decimal ID of a feature; 1 turns the feature
	// on, 0 off. A feature without a value has the default of the build.
	Policy = `HKLM\SYSTEM\CurrentControlSet\Policies\Microsoft\FeatureManagement\Overrides`
	// Local has the overrides of features by other programs, each in the subkey <priority>\<ID> with the value EnabledState.
	Local = `HKLM\SYSTEM\CurrentControlSet\Control\FeatureManagement\Overrides`
	// HNS has the switches that the Host Network Service reads when it starts.
	HNS = `HKLM\SYSTEM\CurrentControlSet\Services\hns\State`
	// VFP has the switches of the Virtual Filtering Platform.
	VFP        = `HKLM\SYSTEM\CurrentControlSet\Services\VfpExt\Parameters`
	wcifs      = `HKLM\SYSTEM\CurrentControlSet\Services\wcifs`
	containers = `HKLM\SYSTEM\CurrentControlSet\Control\Windows Containers`
	wintrust   = `HKLM\SOFTWARE\Microsoft\Cryptography\Wintrust\Config`
	wintrust32 = `HKLM\SOFTWARE\Wow6432Node\Microsoft\Cryptography\Wintrust\Config`
)

// Keys returns the keys whose values are read, apart from Local, whose values are in subkeys. The key of the driver wcifs
// also has the values of its registration.
func Keys() []string { return []string{Policy, HNS, VFP, wcifs, containers, wintrust, wintrust32} }

// Setting is a value that an installer gives to a switch.
type Setting struct {
	Key       string
	Name      string
	Value     string // a number in decimal
	Windows   int    // the build of Windows that the installer sets the switch on; 0: all
	Installer string // AKS
	Since     string // the month of the update with the switch, such as 2024-03B; "": not published
	Means     string // its meaning by the source; "": none is published
	Source    string // URL
}

// Known returns the settings of a switch for a build of Windows such as 20348, and those for all builds. With build 0, it
// returns the settings for every build.
func Known(key, name string, build int) (all []Setting) {
	for _, s := range Table() {
		if strings.EqualFold(s.Key, key) && strings.EqualFold(s.Name, name) &&
			(s.Windows == 0 || build == 0 || s.Windows == build) {
			all = append(all, s)
		}
	}
	return all
}

// Contradict reports whether two installers give a switch different values.
func Contradict(settings []Setting) bool {
	return slices.ContainsFunc(settings, func(s Setting) bool { return s.Value != settings[0].Value })
}
