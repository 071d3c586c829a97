package answer_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reference is where Microsoft describes the settings.
const reference = "https://learn.microsoft.com/en-us/windows-hardware/customize/desktop/unattend/"

// Components, by what they are about.
const (
	internationalPE = "Microsoft-Windows-International-Core-WinPE"
	pnpPE           = "Microsoft-Windows-PnpCustomizationsWinPE"
	windowsSetup    = "Microsoft-Windows-Setup"
	shell           = "Microsoft-Windows-Shell-Setup"
	deployment      = "Microsoft-Windows-Deployment"
	serverManager   = "Microsoft-Windows-ServerManager-SvrMgrNc"
	activation      = "Microsoft-Windows-Security-SPP-UX"
	licensing       = "Microsoft-Windows-Security-SPP"
	pnpSysprep      = "Microsoft-Windows-PnpSysprep"
	international   = "Microsoft-Windows-International-Core"
)

// allowedPasses lists the passes in which Microsoft's pages allow the settings that we
// write of each component.
var allowedPasses = map[string][]string{
	internationalPE: {"windowsPE"},
	pnpPE:           {"windowsPE"},
	windowsSetup:    {"windowsPE"},
	shell:           {"specialize", "oobeSystem"},
	deployment:      {"specialize"},
	serverManager:   {"specialize"},
	activation:      {"specialize"},
	licensing:       {"generalize"},
	pnpSysprep:      {"generalize"},
	international:   {"oobeSystem"},
}

const (
	boolean  = `true|false`
	locale   = `[a-z]{2,3}(-[A-Z][a-z]{3})?-[A-Z]{2}`
	number   = `[1-9][0-9]*`
	encoded  = `[A-Za-z0-9+/]+=*`
	showUI   = `Always|OnError|Never`
	anything = `[^\x00-\x1f]+` // Go counts to 1000 only; TestRefusedValues has the limit of 1024
)

// row is a setting that we write.
type row struct {
	component, path string
	// allowed are the values that Microsoft's page allows; of numbers and texts, those
	// that make sense here.
	allowed string
}

// page returns the address of Microsoft's page of the setting.
func (r row) page() string {
	return reference + strings.ToLower(r.component+"-"+strings.ReplaceAll(r.path, "/", "-"))
}

// known lists all settings that we write.
var known = []row{
	{internationalPE, "SetupUILanguage/UILanguage", locale},
	{internationalPE, "InputLocale", locale},
	{internationalPE, "SystemLocale", locale},
	{internationalPE, "UILanguage", locale},
	{internationalPE, "UserLocale", locale},

	{pnpPE, "DriverPaths/PathAndCredentials/Path", `[C-G]:\\[A-Za-z0-9_-]+`},

	{windowsSetup, "DynamicUpdate/Enable", boolean},
	{windowsSetup, "DynamicUpdate/WillShowUI", showUI},
	{windowsSetup, "Diagnostics/OptIn", boolean},
	{windowsSetup, "DiskConfiguration/WillShowUI", showUI},
	{windowsSetup, "DiskConfiguration/Disk/DiskID", `0`},
	{windowsSetup, "DiskConfiguration/Disk/WillWipeDisk", boolean},
	{windowsSetup, "DiskConfiguration/Disk/CreatePartitions/CreatePartition/Order", number},
	{windowsSetup, "DiskConfiguration/Disk/CreatePartitions/CreatePartition/Type", `Primary|EFI|Extended|Logical|MSR`},
	{windowsSetup, "DiskConfiguration/Disk/CreatePartitions/CreatePartition/Size", number},
	{windowsSetup, "DiskConfiguration/Disk/CreatePartitions/CreatePartition/Extend", boolean},
	{windowsSetup, "DiskConfiguration/Disk/ModifyPartitions/ModifyPartition/Order", number},
	{windowsSetup, "DiskConfiguration/Disk/ModifyPartitions/ModifyPartition/PartitionID", number},
	{windowsSetup, "DiskConfiguration/Disk/ModifyPartitions/ModifyPartition/Format", `FAT32|NTFS`},
	{windowsSetup, "DiskConfiguration/Disk/ModifyPartitions/ModifyPartition/Label", `[A-Za-z]{1,11}`},
	{windowsSetup, "DiskConfiguration/Disk/ModifyPartitions/ModifyPartition/Letter", `[C-Z]`},
	{windowsSetup, "ImageInstall/OSImage/InstallFrom/MetaData/Key", `/IMAGE/(INDEX|NAME|DESCRIPTION)`},
	{windowsSetup, "ImageInstall/OSImage/InstallFrom/MetaData/Value", number},
	{windowsSetup, "ImageInstall/OSImage/InstallTo/DiskID", `0`},
	{windowsSetup, "ImageInstall/OSImage/InstallTo/PartitionID", number},
	{windowsSetup, "ImageInstall/OSImage/WillShowUI", showUI},
	{windowsSetup, "UserData/AcceptEula", `true`},
	{windowsSetup, "UserData/ProductKey/Key", `([0-9A-Z]{5}-){4}[0-9A-Z]{5}`},
	{windowsSetup, "UserData/ProductKey/WillShowUI", showUI},

	{shell, "ComputerName", `[A-Za-z0-9-]{1,15}`},
	{shell, "TimeZone", `[A-Za-z0-9 .()+-]{3,64}`},
	{deployment, "RunSynchronous/RunSynchronousCommand/Order", number},
	{deployment, "RunSynchronous/RunSynchronousCommand/Description", `.{1,259}`},
	{deployment, "RunSynchronous/RunSynchronousCommand/Path", `.{1,259}`},
	{serverManager, "DoNotOpenServerManagerAtLogon", boolean},
	{activation, "SkipAutoActivation", boolean},

	{licensing, "SkipRearm", `0|1`},
	{pnpSysprep, "PersistAllDeviceInstalls", boolean},

	{international, "InputLocale", locale},
	{international, "SystemLocale", locale},
	{international, "UILanguage", locale},
	{international, "UserLocale", locale},
	{shell, "AutoLogon/Enabled", boolean},
	{shell, "AutoLogon/LogonCount", number},
	{shell, "AutoLogon/Username", `[^"/\\\[\]:|<>+=;,?*%@]{1,256}`},
	{shell, "AutoLogon/Password/Value", encoded},
	{shell, "AutoLogon/Password/PlainText", boolean},
	{shell, "FirstLogonCommands/SynchronousCommand/Order", `[1-9]|[1-9][0-9]|[1-4][0-9][0-9]|500`},
	{shell, "FirstLogonCommands/SynchronousCommand/CommandLine", anything},
	{shell, "FirstLogonCommands/SynchronousCommand/Description", `[^\x00-\x1f]{1,256}`},
	{shell, "FirstLogonCommands/SynchronousCommand/RequiresUserInput", boolean},
	{shell, "OOBE/HideEULAPage", boolean},
	{shell, "OOBE/HideLocalAccountScreen", boolean},
	{shell, "OOBE/HideOEMRegistrationScreen", boolean},
	{shell, "OOBE/HideOnlineAccountScreens", boolean},
	{shell, "OOBE/HideWirelessSetupInOOBE", boolean},
	{shell, "OOBE/ProtectYourPC", `1|2|3`},
	{shell, "UserAccounts/AdministratorPassword/Value", encoded},
	{shell, "UserAccounts/AdministratorPassword/PlainText", boolean},
	{shell, "UserAccounts/LocalAccounts/LocalAccount/Name", `[a-z-]{1,20}`},
	{shell, "UserAccounts/LocalAccounts/LocalAccount/Group", `Administrators|Users`},
	{shell, "UserAccounts/LocalAccounts/LocalAccount/Description", `.{1,256}`},
	{shell, "UserAccounts/LocalAccounts/LocalAccount/Password/Value", encoded},
	{shell, "UserAccounts/LocalAccounts/LocalAccount/Password/PlainText", boolean},
}

// Each setting of every file is known, allowed in its pass, and has an allowed value; and
// each known setting is in one of the files.
func TestSettingsAreThoseOfMicrosoft(t *testing.T) {
	used := map[string]bool{}
	for name, file := range files(t) {
		for _, s := range settings(t, file) {
			if !slices.Contains(allowedPasses[s.component], s.pass) {
				t.Errorf("%s: %s is not allowed in %s", name, s.component, s.pass)
			}
			found := slices.IndexFunc(known, func(r row) bool { return r.component == s.component && r.path == s.path })
			if found < 0 {
				t.Errorf("%s: %s has no setting %s", name, s.component, s.path)
				continue
			}
			k := known[found]
			used[k.page()] = true
			if !regexp.MustCompile(`^(` + k.allowed + `)$`).MatchString(s.value) {
				t.Errorf("%s: %s %s is %q; %s allows %s", name, s.component, s.path, s.value, k.page(), k.allowed)
			}
		}
	}
	seen := map[string]bool{}
	for _, k := range known {
		if !used[k.page()] {
			t.Errorf("no file has %s %s", k.component, k.path)
		}
		if seen[k.page()] {
			t.Errorf("%s is in the table twice", k.page())
		}
		seen[k.page()] = true
	}
	components := map[string]bool{}
	for _, k := range known {
		components[k.component] = true
	}
	if len(components) != len(allowedPasses) {
		t.Errorf("%d components have settings, %d have passes", len(components), len(allowedPasses))
	}
}
