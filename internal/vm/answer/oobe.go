package answer

// SetupAccount is the name of an account that the answers for Windows 11 make, because the first
// start of Windows 11 asks for a user if the Administrator is the only account. No user logs on with
// this account: the script of the Administrator's first logon removes it.
const SetupAccount = "swdt-setup"

// oobeSystem returns the settings for the first start.
func (o Options) oobeSystem() []any {
	shell := shellFirstStart{
		component: named("Microsoft-Windows-Shell-Setup"),
		AutoLogon: autoLogon{
			Enabled: true, LogonCount: 1,
			Username: Administrator(o.Language), Password: o.Password.in("Password"),
		},
		OOBE: oobe{
			HideEULAPage: true, HideLocalAccountScreen: true, HideOEMRegistrationScreen: true,
			HideOnlineAccountScreens: true, HideWirelessSetupInOOBE: true, ProtectYourPC: 3,
		},
		TimeZone:     o.TimeZone,
		UserAccounts: userAccounts{Administrator: o.Password.in("AdministratorPassword")},
	}
	if o.Release.client() {
		shell.UserAccounts.Local = &localAccounts{Accounts: []localAccount{{
			added: add(), Name: SetupAccount, Group: "Administrators",
			Description: "Removed at the first logon", Password: o.Password.in("Password"),
		}}}
	}
	if len(o.FirstLogon) > 0 {
		shell.FirstLogon = &firstLogon{}
		for n, command := range o.FirstLogon {
			shell.FirstLogon.Commands = append(shell.FirstLogon.Commands, logonCommand{
				added: add(), Order: n + 1, CommandLine: command.Line, Description: command.Description,
			})
		}
	}
	return []any{
		international{component: named("Microsoft-Windows-International-Core"), locales: o.locales()},
		shell,
	}
}

type international struct {
	component
	locales
}

type shellFirstStart struct {
	component
	AutoLogon    autoLogon    `xml:"AutoLogon"`
	FirstLogon   *firstLogon  `xml:"FirstLogonCommands"`
	OOBE         oobe         `xml:"OOBE"`
	TimeZone     string       `xml:"TimeZone"`
	UserAccounts userAccounts `xml:"UserAccounts"`
}

type autoLogon struct {
	Enabled    bool   `xml:"Enabled"`
	LogonCount int    `xml:"LogonCount"`
	Username   string `xml:"Username"`
	Password   secret `xml:"Password"`
}

type firstLogon struct {
	Commands []logonCommand `xml:"SynchronousCommand"`
}

type logonCommand struct {
	added
	Order             int    `xml:"Order"`
	CommandLine       string `xml:"CommandLine"`
	Description       string `xml:"Description"`
	RequiresUserInput bool   `xml:"RequiresUserInput"`
}

type oobe struct {
	HideEULAPage              bool `xml:"HideEULAPage"`
	HideLocalAccountScreen    bool `xml:"HideLocalAccountScreen"`
	HideOEMRegistrationScreen bool `xml:"HideOEMRegistrationScreen"`
	HideOnlineAccountScreens  bool `xml:"HideOnlineAccountScreens"`
	HideWirelessSetupInOOBE   bool `xml:"HideWirelessSetupInOOBE"`
	ProtectYourPC             int  `xml:"ProtectYourPC"` // 3 means that Windows sends and updates nothing by itself
}

type userAccounts struct {
	Administrator secret         `xml:"AdministratorPassword"`
	Local         *localAccounts `xml:"LocalAccounts"`
}

type localAccounts struct {
	Accounts []localAccount `xml:"LocalAccount"`
}

type localAccount struct {
	added
	Name        string `xml:"Name"`
	Group       string `xml:"Group"`
	Description string `xml:"Description"`
	Password    secret `xml:"Password"`
}
