package simulated

import (
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
)

// installServicing adds what updates leave in the registry: a key for each package, whose CurrentState is 112 (0x70) while it
// is installed. Keys of this form are in scripts that look for an update, such as Package_for_KB4474419~31bf3856ad364e35~
// amd64~~6.1.3.2, and in listings of C:\Windows\servicing on Server 2022, such as Package_for_RollupFix~31bf3856ad364e35~
// amd64~~20348.3807.1.7; the test of dissect.target (plugins/os/windows, "CurrentState", 0x70) has the state. The versions are
// examples for build 20348.2849.
func (m *Machine) installServicing() {
	for _, name := range []string{
		"Package_for_DotNetRollup_481~31bf3856ad364e35~amd64~~10.0.9282.2",
		"Package_for_RollupFix~31bf3856ad364e35~amd64~~20348.2849.1.9",
		"Package_for_ServicingStack_2840~31bf3856ad364e35~amd64~~20348.2840.1.2",
		"Microsoft-Windows-Foundation-Package~31bf3856ad364e35~amd64~~10.0.20348.1",
	} {
		_ = m.registry.set(servicingKey+`\Packages\`+name, platform.RegistryValue{Name: "CurrentState",
			Type: platform.RegistryDWord, Integer: 112})
	}
}

// driver is a driver that containers need. Windows has its registration in the key of the services, as those of programs.
type driver struct {
	service string
	image   string // the value ImagePath
	kind    uint64 // 1: SERVICE_KERNEL_DRIVER, 2: SERVICE_FILE_SYSTEM_DRIVER (winnt.h)
	start   uint64 // 0: boot, 1: system, 2: auto, 3: demand (winnt.h)
}

// drivers returns the drivers of a node. Each form of ImagePath is in published lists: of LoadOrd (strontic/xcyclopedia) with
// \SystemRoot for wcifs and without for CLFS, of services' usual values with system32\drivers\vfpext.sys. When they start is
// an example.
func drivers() []driver {
	return []driver{
		{"Tcpip", `System32\drivers\tcpip.sys`, 1, 0},
		{"afunix", `\SystemRoot\system32\drivers\afunix.sys`, 1, 1},
		{"bindflt", `\SystemRoot\system32\drivers\bindflt.sys`, 2, 2},
		{"CimFS", `\SystemRoot\System32\drivers\cimfs.sys`, 2, 1},
		{"VfpExt", `system32\drivers\vfpext.sys`, 1, 3},
		{"VMSMP", `\SystemRoot\System32\drivers\vmswitch.sys`, 1, 3},
		{"wcifs", `\SystemRoot\system32\drivers\wcifs.sys`, 2, 2},
		{"WinNat", `system32\drivers\winnat.sys`, 1, 3},
	}
}

func (m *Machine) installDrivers() {
	for _, d := range drivers() {
		file := d.image[strings.LastIndex(d.image, `\`)+1:]
		m.putProgram(systemFolder+`\drivers\`+file, BinarySpec{Name: strings.TrimSuffix(file, ".sys"), Version: "10.0.20348.2849"})
		for name, value := range map[string]uint64{"Type": d.kind, "Start": d.start} {
			_ = m.registry.set(servicesKey+d.service, platform.RegistryValue{Name: name, Type: platform.RegistryDWord, Integer: value})
		}
		_ = m.registry.set(servicesKey+d.service, platform.RegistryValue{Name: "ImagePath", Type: platform.RegistryExpandString,
			String: d.image})
	}
}

// isServicesKey reports whether a key is the key of the services, or below it.
func isServicesKey(key string) bool {
	return strings.HasPrefix(fold(strings.Trim(key, `\`))+`\`, fold(servicesKey))
}

// writeServiceKeys writes the registrations of the services into their keys, where the SCM keeps them: Type, Start, ImagePath,
// ObjectName, DisplayName and DependOnService ("HKLM\SYSTEM\CurrentControlSet\Services Registry Tree", learn.microsoft.com).
// The other values of the keys stay. The caller holds the lock.
func (m *Machine) writeServiceKeys() {
	for _, s := range m.services {
		if s.deleting {
			continue
		}
		for _, value := range registrationValues(s) {
			_ = m.registry.set(servicesKey+s.config.Name, value)
		}
	}
}

// registrationValues returns the values of a service's key. The numbers are those of winnt.h: SERVICE_WIN32_OWN_PROCESS is
// 0x10, SERVICE_WIN32_SHARE_PROCESS 0x20; SERVICE_AUTO_START is 2, SERVICE_DEMAND_START 3, SERVICE_DISABLED 4.
func registrationValues(s *service) []platform.RegistryValue {
	kind, start, account := uint64(0x10), uint64(3), s.config.Account
	if s.shared {
		kind = 0x20
	}
	switch s.config.StartType {
	case platform.StartAuto:
		start = 2
	case platform.StartDisabled:
		start = 4
	}
	if account == "" {
		account = "LocalSystem"
	}
	return []platform.RegistryValue{
		{Name: "Type", Type: platform.RegistryDWord, Integer: kind},
		{Name: "Start", Type: platform.RegistryDWord, Integer: start},
		{Name: "ImagePath", Type: platform.RegistryExpandString, String: s.config.CommandLine},
		{Name: "ObjectName", Type: platform.RegistryString, String: account},
		{Name: "DisplayName", Type: platform.RegistryString, String: s.config.DisplayName},
		{Name: "DependOnService", Type: platform.RegistryMultiString, Strings: s.config.Dependencies},
	}
}
