package answer

// specialize returns the settings for the machine, before its first start.
func (o Options) specialize() []any {
	components := []any{
		shellMachine{component: named("Microsoft-Windows-Shell-Setup"), ComputerName: o.ComputerName, TimeZone: o.TimeZone},
		privateNetwork(),
		activation{component: named("Microsoft-Windows-Security-SPP-UX"), SkipAutoActivation: true},
	}
	if !o.Core && !o.Release.client() {
		components = append(components, serverManager{
			component: named("Microsoft-Windows-ServerManager-SvrMgrNc"), DoNotOpenServerManagerAtLogon: true,
		})
	}
	if o.RemoteDesktop {
		components = append(components,
			terminalServices{component: named("Microsoft-Windows-TerminalServices-LocalSessionManager")},
			firewall{component: named("Networking-MPSSVC-Svc"), Groups: []firewallGroup{remoteDesktop()}})
	}
	return components
}

type shellMachine struct {
	component
	ComputerName string `xml:"ComputerName"`
	TimeZone     string `xml:"TimeZone"`
}

type activation struct {
	component
	SkipAutoActivation bool `xml:"SkipAutoActivation"`
}

type serverManager struct {
	component
	DoNotOpenServerManagerAtLogon bool `xml:"DoNotOpenServerManagerAtLogon"`
}

type deployment struct {
	component
	Commands []synchronousCommand `xml:"RunSynchronous>RunSynchronousCommand"`
}

type synchronousCommand struct {
	added
	Order       int    `xml:"Order"`
	Description string `xml:"Description"`
	Path        string `xml:"Path"`
}

// privateNetwork returns the command that makes the first network private before Windows sees that
// network. The firewall's rules for private networks then apply, and Windows does not ask.
func privateNetwork() deployment {
	return deployment{component: named("Microsoft-Windows-Deployment"), Commands: []synchronousCommand{{
		added: add(), Order: 1, Description: "The first network is private",
		Path: `reg.exe add "HKLM\SOFTWARE\Policies\Microsoft\Windows NT\CurrentVersion\NetworkList\Signatures\FirstNetwork"` +
			` /v Category /t REG_DWORD /d 1 /f`,
	}}}
}

type terminalServices struct {
	component
	DenyConnections bool `xml:"fDenyTSConnections"`
}

type firewall struct {
	component
	Groups []firewallGroup `xml:"FirewallGroups>FirewallGroup"`
}

type firewallGroup struct {
	keyed
	Active  bool   `xml:"Active"`
	Group   string `xml:"Group"`
	Profile string `xml:"Profile"`
}

// remoteDesktop returns the firewall group of Remote Desktop. It names the group by its resource,
// since the group's display name depends on the language.
func remoteDesktop() firewallGroup {
	return firewallGroup{keyed: addKeyed("RemoteDesktop"), Active: true, Group: "@FirewallAPI.dll,-28752",
		Profile: "all"}
}
