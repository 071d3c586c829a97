package answer_test

import (
	"regexp"
	"slices"
	"testing"
)

// reference is where Microsoft describes the settings.
const reference = "https://learn.microsoft.com/en-us/windows-hardware/customize/desktop/unattend/"

// allowedPasses lists the passes in which Microsoft's pages allow the settings that we
// write of each component.
var allowedPasses = map[string][]string{
	"Microsoft-Windows-International-Core-WinPE":             {"windowsPE"},
	"Microsoft-Windows-PnpCustomizationsWinPE":               {"windowsPE"},
	"Microsoft-Windows-Setup":                                {"windowsPE"},
	"Microsoft-Windows-Shell-Setup":                          {"specialize", "oobeSystem"},
	"Microsoft-Windows-Deployment":                           {"specialize"},
	"Microsoft-Windows-TerminalServices-LocalSessionManager": {"specialize"},
	"Networking-MPSSVC-Svc":                                  {"specialize"},
	"Microsoft-Windows-ServerManager-SvrMgrNc":               {"specialize"},
	"Microsoft-Windows-Security-SPP-UX":                      {"specialize"},
	"Microsoft-Windows-Security-SPP":                         {"generalize"},
	"Microsoft-Windows-PnpSysprep":                           {"generalize"},
	"Microsoft-Windows-International-Core":                   {"oobeSystem"},
}

const (
	boolean  = `true|false`
	locale   = `[a-z]{2,3}(-[A-Z][a-z]{3})?-[A-Z]{2}`
	input    = locale + `|[0-9A-Fa-f]{4}:[0-9A-Fa-f]{8}`
	number   = `[1-9][0-9]*`
	encoded  = `[A-Za-z0-9+/]+=*`
	showUI   = `Always|OnError|Never`
	anything = `[^\x00-\x1f]+` // Go counts to 1000 only; TestRefusedValues has the limit of 1024
)

// known lists all settings that we write: the component, the setting, the values that
// Microsoft's page allows (for numbers and texts: those that make sense here), and the
// page. Component and setting are that page's title, too.
var known = []struct{ component, path, allowed, page string }{
	{"Microsoft-Windows-International-Core-WinPE", "SetupUILanguage/UILanguage", locale, "microsoft-windows-international-core-winpe-setupuilanguage-uilanguage"},
	{"Microsoft-Windows-International-Core-WinPE", "InputLocale", input, "microsoft-windows-international-core-winpe-inputlocale"},
	{"Microsoft-Windows-International-Core-WinPE", "SystemLocale", locale, "microsoft-windows-international-core-winpe-systemlocale"},
	{"Microsoft-Windows-International-Core-WinPE", "UILanguage", locale, "microsoft-windows-international-core-winpe-uilanguage"},
	{"Microsoft-Windows-International-Core-WinPE", "UserLocale", input, "microsoft-windows-international-core-winpe-userlocale"},

	{"Microsoft-Windows-PnpCustomizationsWinPE", "DriverPaths/PathAndCredentials/Path", `[C-G]:\\[A-Za-z0-9_-]+`, "microsoft-windows-pnpcustomizationswinpe-driverpaths-pathandcredentials-path"},

	{"Microsoft-Windows-Setup", "DynamicUpdate/Enable", boolean, "microsoft-windows-setup-dynamicupdate-enable"},
	{"Microsoft-Windows-Setup", "DynamicUpdate/WillShowUI", showUI, "microsoft-windows-setup-dynamicupdate-willshowui"},
	{"Microsoft-Windows-Setup", "Diagnostics/OptIn", boolean, "microsoft-windows-setup-diagnostics-optin"},
	{"Microsoft-Windows-Setup", "DiskConfiguration/WillShowUI", showUI, "microsoft-windows-setup-diskconfiguration-willshowui"},
	{"Microsoft-Windows-Setup", "DiskConfiguration/Disk/DiskID", `0`, "microsoft-windows-setup-diskconfiguration-disk-diskid"},
	{"Microsoft-Windows-Setup", "DiskConfiguration/Disk/WillWipeDisk", boolean, "microsoft-windows-setup-diskconfiguration-disk-willwipedisk"},
	{"Microsoft-Windows-Setup", "DiskConfiguration/Disk/CreatePartitions/CreatePartition/Order", number, "microsoft-windows-setup-diskconfiguration-disk-createpartitions-createpartition-order"},
	{"Microsoft-Windows-Setup", "DiskConfiguration/Disk/CreatePartitions/CreatePartition/Type", `Primary|EFI|Extended|Logical|MSR`, "microsoft-windows-setup-diskconfiguration-disk-createpartitions-createpartition-type"},
	{"Microsoft-Windows-Setup", "DiskConfiguration/Disk/CreatePartitions/CreatePartition/Size", number, "microsoft-windows-setup-diskconfiguration-disk-createpartitions-createpartition-size"},
	{"Microsoft-Windows-Setup", "DiskConfiguration/Disk/CreatePartitions/CreatePartition/Extend", boolean, "microsoft-windows-setup-diskconfiguration-disk-createpartitions-createpartition-extend"},
	{"Microsoft-Windows-Setup", "DiskConfiguration/Disk/ModifyPartitions/ModifyPartition/Order", number, "microsoft-windows-setup-diskconfiguration-disk-modifypartitions-modifypartition-order"},
	{"Microsoft-Windows-Setup", "DiskConfiguration/Disk/ModifyPartitions/ModifyPartition/PartitionID", number, "microsoft-windows-setup-diskconfiguration-disk-modifypartitions-modifypartition-partitionid"},
	{"Microsoft-Windows-Setup", "DiskConfiguration/Disk/ModifyPartitions/ModifyPartition/Format", `FAT32|NTFS`, "microsoft-windows-setup-diskconfiguration-disk-modifypartitions-modifypartition-format"},
	{"Microsoft-Windows-Setup", "DiskConfiguration/Disk/ModifyPartitions/ModifyPartition/Label", `[A-Za-z]{1,11}`, "microsoft-windows-setup-diskconfiguration-disk-modifypartitions-modifypartition-label"},
	{"Microsoft-Windows-Setup", "DiskConfiguration/Disk/ModifyPartitions/ModifyPartition/Letter", `[C-Z]`, "microsoft-windows-setup-diskconfiguration-disk-modifypartitions-modifypartition-letter"},
	{"Microsoft-Windows-Setup", "ImageInstall/OSImage/InstallFrom/MetaData/Key", `/IMAGE/(INDEX|NAME|DESCRIPTION)`, "microsoft-windows-setup-imageinstall-osimage-installfrom-metadata-key"},
	{"Microsoft-Windows-Setup", "ImageInstall/OSImage/InstallFrom/MetaData/Value", number, "microsoft-windows-setup-imageinstall-osimage-installfrom-metadata-value"},
	{"Microsoft-Windows-Setup", "ImageInstall/OSImage/InstallTo/DiskID", `0`, "microsoft-windows-setup-imageinstall-osimage-installto-diskid"},
	{"Microsoft-Windows-Setup", "ImageInstall/OSImage/InstallTo/PartitionID", number, "microsoft-windows-setup-imageinstall-osimage-installto-partitionid"},
	{"Microsoft-Windows-Setup", "ImageInstall/OSImage/WillShowUI", showUI, "microsoft-windows-setup-imageinstall-osimage-willshowui"},
	{"Microsoft-Windows-Setup", "UserData/AcceptEula", `true`, "microsoft-windows-setup-userdata-accepteula"},
	{"Microsoft-Windows-Setup", "UserData/ProductKey/Key", `([0-9A-Z]{5}-){4}[0-9A-Z]{5}`, "microsoft-windows-setup-userdata-productkey-key"},
	{"Microsoft-Windows-Setup", "UserData/ProductKey/WillShowUI", showUI, "microsoft-windows-setup-userdata-productkey-willshowui"},

	{"Microsoft-Windows-Shell-Setup", "ComputerName", `[A-Za-z0-9-]{1,15}`, "microsoft-windows-shell-setup-computername"},
	{"Microsoft-Windows-Shell-Setup", "TimeZone", `[A-Za-z0-9 .()+-]{3,64}`, "microsoft-windows-shell-setup-timezone"},
	{"Microsoft-Windows-Deployment", "RunSynchronous/RunSynchronousCommand/Order", number, "microsoft-windows-deployment-runsynchronous-runsynchronouscommand-order"},
	{"Microsoft-Windows-Deployment", "RunSynchronous/RunSynchronousCommand/Description", `.{1,259}`, "microsoft-windows-deployment-runsynchronous-runsynchronouscommand-description"},
	{"Microsoft-Windows-Deployment", "RunSynchronous/RunSynchronousCommand/Path", `.{1,259}`, "microsoft-windows-deployment-runsynchronous-runsynchronouscommand-path"},
	{"Microsoft-Windows-TerminalServices-LocalSessionManager", "fDenyTSConnections", boolean, "microsoft-windows-terminalservices-localsessionmanager-fdenytsconnections"},
	{"Networking-MPSSVC-Svc", "FirewallGroups/FirewallGroup/Active", boolean, "networking-mpssvc-svc-firewallgroups-firewallgroup-active"},
	{"Networking-MPSSVC-Svc", "FirewallGroups/FirewallGroup/Group", `@FirewallAPI\.dll,-28752`, "networking-mpssvc-svc-firewallgroups-firewallgroup-group"},
	{"Networking-MPSSVC-Svc", "FirewallGroups/FirewallGroup/Profile", `domain|private|public|all`, "networking-mpssvc-svc-firewallgroups-firewallgroup-profile"},
	{"Microsoft-Windows-ServerManager-SvrMgrNc", "DoNotOpenServerManagerAtLogon", boolean, "microsoft-windows-servermanager-svrmgrnc-donotopenservermanageratlogon"},
	{"Microsoft-Windows-Security-SPP-UX", "SkipAutoActivation", boolean, "microsoft-windows-security-spp-ux-skipautoactivation"},

	{"Microsoft-Windows-Security-SPP", "SkipRearm", `0|1`, "microsoft-windows-security-spp-skiprearm"},
	{"Microsoft-Windows-PnpSysprep", "PersistAllDeviceInstalls", boolean, "microsoft-windows-pnpsysprep-persistalldeviceinstalls"},

	{"Microsoft-Windows-International-Core", "InputLocale", input, "microsoft-windows-international-core-inputlocale"},
	{"Microsoft-Windows-International-Core", "SystemLocale", locale, "microsoft-windows-international-core-systemlocale"},
	{"Microsoft-Windows-International-Core", "UILanguage", locale, "microsoft-windows-international-core-uilanguage"},
	{"Microsoft-Windows-International-Core", "UserLocale", input, "microsoft-windows-international-core-userlocale"},
	{"Microsoft-Windows-Shell-Setup", "AutoLogon/Enabled", boolean, "microsoft-windows-shell-setup-autologon-enabled"},
	{"Microsoft-Windows-Shell-Setup", "AutoLogon/LogonCount", number, "microsoft-windows-shell-setup-autologon-logoncount"},
	{"Microsoft-Windows-Shell-Setup", "AutoLogon/Username", `[^"/\\\[\]:|<>+=;,?*%@]{1,256}`, "microsoft-windows-shell-setup-autologon-username"},
	{"Microsoft-Windows-Shell-Setup", "AutoLogon/Password/Value", encoded, "microsoft-windows-shell-setup-autologon-password-value"},
	{"Microsoft-Windows-Shell-Setup", "AutoLogon/Password/PlainText", boolean, "microsoft-windows-shell-setup-autologon-password-plaintext"},
	{"Microsoft-Windows-Shell-Setup", "FirstLogonCommands/SynchronousCommand/Order", `[1-9]|[1-9][0-9]|[1-4][0-9][0-9]|500`, "microsoft-windows-shell-setup-firstlogoncommands-synchronouscommand-order"},
	{"Microsoft-Windows-Shell-Setup", "FirstLogonCommands/SynchronousCommand/CommandLine", anything, "microsoft-windows-shell-setup-firstlogoncommands-synchronouscommand-commandline"},
	{"Microsoft-Windows-Shell-Setup", "FirstLogonCommands/SynchronousCommand/Description", `[^\x00-\x1f]{1,256}`, "microsoft-windows-shell-setup-firstlogoncommands-synchronouscommand-description"},
	{"Microsoft-Windows-Shell-Setup", "FirstLogonCommands/SynchronousCommand/RequiresUserInput", boolean, "microsoft-windows-shell-setup-firstlogoncommands-synchronouscommand-requiresuserinput"},
	{"Microsoft-Windows-Shell-Setup", "OOBE/HideEULAPage", boolean, "microsoft-windows-shell-setup-oobe-hideeulapage"},
	{"Microsoft-Windows-Shell-Setup", "OOBE/HideLocalAccountScreen", boolean, "microsoft-windows-shell-setup-oobe-hidelocalaccountscreen"},
	{"Microsoft-Windows-Shell-Setup", "OOBE/HideOEMRegistrationScreen", boolean, "microsoft-windows-shell-setup-oobe-hideoemregistrationscreen"},
	{"Microsoft-Windows-Shell-Setup", "OOBE/HideOnlineAccountScreens", boolean, "microsoft-windows-shell-setup-oobe-hideonlineaccountscreens"},
	{"Microsoft-Windows-Shell-Setup", "OOBE/HideWirelessSetupInOOBE", boolean, "microsoft-windows-shell-setup-oobe-hidewirelesssetupinoobe"},
	{"Microsoft-Windows-Shell-Setup", "OOBE/ProtectYourPC", `1|2|3`, "microsoft-windows-shell-setup-oobe-protectyourpc"},
	{"Microsoft-Windows-Shell-Setup", "UserAccounts/AdministratorPassword/Value", encoded, "microsoft-windows-shell-setup-useraccounts-administratorpassword-value"},
	{"Microsoft-Windows-Shell-Setup", "UserAccounts/AdministratorPassword/PlainText", boolean, "microsoft-windows-shell-setup-useraccounts-administratorpassword-plaintext"},
	{"Microsoft-Windows-Shell-Setup", "UserAccounts/LocalAccounts/LocalAccount/Name", `[a-z-]{1,20}`, "microsoft-windows-shell-setup-useraccounts-localaccounts-localaccount-name"},
	{"Microsoft-Windows-Shell-Setup", "UserAccounts/LocalAccounts/LocalAccount/Group", `Administrators|Users`, "microsoft-windows-shell-setup-useraccounts-localaccounts-localaccount-group"},
	{"Microsoft-Windows-Shell-Setup", "UserAccounts/LocalAccounts/LocalAccount/Description", `.{1,256}`, "microsoft-windows-shell-setup-useraccounts-localaccounts-localaccount-description"},
	{"Microsoft-Windows-Shell-Setup", "UserAccounts/LocalAccounts/LocalAccount/Password/Value", encoded, "microsoft-windows-shell-setup-useraccounts-localaccounts-localaccount-password-value"},
	{"Microsoft-Windows-Shell-Setup", "UserAccounts/LocalAccounts/LocalAccount/Password/PlainText", boolean, "microsoft-windows-shell-setup-useraccounts-localaccounts-localaccount-password-plaintext"},
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
			found := slices.IndexFunc(known, func(k struct{ component, path, allowed, page string }) bool {
				return k.component == s.component && k.path == s.path
			})
			if found < 0 {
				t.Errorf("%s: %s has no setting %s", name, s.component, s.path)
				continue
			}
			k := known[found]
			used[k.page] = true
			if !regexp.MustCompile(`^(` + k.allowed + `)$`).MatchString(s.value) {
				t.Errorf("%s: %s %s is %q; %s%s allows %s", name, s.component, s.path, s.value, reference, k.page, k.allowed)
			}
		}
	}
	seen := map[string]bool{}
	for _, k := range known {
		if !used[k.page] {
			t.Errorf("no file has %s %s", k.component, k.path)
		}
		if seen[k.page] {
			t.Errorf("%s is in the table twice", k.page)
		}
		seen[k.page] = true
	}
	components := map[string]bool{}
	for _, k := range known {
		components[k.component] = true
	}
	if len(components) != len(allowedPasses) {
		t.Errorf("%d components have settings, %d have passes", len(components), len(allowedPasses))
	}
}
