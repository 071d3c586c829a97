package answer

import "strconv"

// Partitions of disk 0, in their order. The partition of Windows fills the rest of the disk.
const (
	systemPartition   = 1
	reservedPartition = 2
	windowsPartition  = 3

	systemSize   = 260 // MB
	reservedSize = 16  // MB
)

// driverLetters are the drive letters that Windows PE may give to the CD with the drivers. Setup
// searches all these drives, and skips those that do not exist.
const driverLetters = "CDEFG"

// windowsPE returns the settings for Windows PE, in which Setup installs Windows.
func (o Options) windowsPE() []any {
	components := []any{o.setupLanguage()}
	if o.DriverFolder != "" {
		components = append(components, o.drivers())
	}
	return append(components, o.setup())
}

type internationalPE struct {
	component
	SetupUILanguage struct {
		UILanguage string `xml:"UILanguage"`
	} `xml:"SetupUILanguage"`
	locales
}

// locales are the settings that the component for Windows PE and the component for the first start
// both have.
type locales struct {
	InputLocale  string `xml:"InputLocale"`
	SystemLocale string `xml:"SystemLocale"`
	UILanguage   string `xml:"UILanguage"`
	UserLocale   string `xml:"UserLocale"`
}

func (o Options) locales() locales {
	return locales{InputLocale: o.Keyboard, SystemLocale: o.Language, UILanguage: o.Language, UserLocale: o.UserLocale}
}

func (o Options) setupLanguage() internationalPE {
	c := internationalPE{component: named("Microsoft-Windows-International-Core-WinPE"), locales: o.locales()}
	c.SetupUILanguage.UILanguage = o.Language
	return c
}

type pnpPE struct {
	component
	DriverPaths []driverPath `xml:"DriverPaths>PathAndCredentials"`
}

type driverPath struct {
	keyed
	Path string `xml:"Path"`
}

func (o Options) drivers() pnpPE {
	c := pnpPE{component: named("Microsoft-Windows-PnpCustomizationsWinPE")}
	for n, letter := range driverLetters {
		c.DriverPaths = append(c.DriverPaths, driverPath{addKeyed(strconv.Itoa(n + 1)),
			string(letter) + `:\` + o.DriverFolder})
	}
	return c
}

type windowsSetup struct {
	component
	DynamicUpdate struct {
		Enable     bool   `xml:"Enable"`
		WillShowUI string `xml:"WillShowUI"`
	} `xml:"DynamicUpdate"`
	Diagnostics struct {
		OptIn bool `xml:"OptIn"`
	} `xml:"Diagnostics"`
	Disks    disks    `xml:"DiskConfiguration"`
	Image    osImage  `xml:"ImageInstall>OSImage"`
	UserData userData `xml:"UserData"`
}

type disks struct {
	WillShowUI string `xml:"WillShowUI"`
	Disk       disk   `xml:"Disk"`
}

type disk struct {
	added
	DiskID   int             `xml:"DiskID"`
	WillWipe bool            `xml:"WillWipeDisk"`
	Create   []newPartition  `xml:"CreatePartitions>CreatePartition"`
	Modify   []usedPartition `xml:"ModifyPartitions>ModifyPartition"`
}

type newPartition struct {
	added
	Order  int    `xml:"Order"`
	Type   string `xml:"Type"`
	Size   int    `xml:"Size,omitempty"` // MB
	Extend bool   `xml:"Extend,omitempty"`
}

type usedPartition struct {
	added
	Order       int    `xml:"Order"`
	PartitionID int    `xml:"PartitionID"`
	Format      string `xml:"Format,omitempty"`
	Label       string `xml:"Label,omitempty"`
	Letter      string `xml:"Letter,omitempty"`
}

type osImage struct {
	From       metaData  `xml:"InstallFrom>MetaData"`
	To         installTo `xml:"InstallTo"`
	WillShowUI string    `xml:"WillShowUI"`
}

type metaData struct {
	added
	Key   string `xml:"Key"`
	Value string `xml:"Value"`
}

type installTo struct {
	DiskID      int `xml:"DiskID"`
	PartitionID int `xml:"PartitionID"`
}

type userData struct {
	AcceptEULA bool `xml:"AcceptEula"`
	ProductKey struct {
		Key        string `xml:"Key,omitempty"`
		WillShowUI string `xml:"WillShowUI"`
	} `xml:"ProductKey"`
}

func (o Options) setup() windowsSetup {
	const onError, never = "OnError", "Never"
	c := windowsSetup{component: named("Microsoft-Windows-Setup")}
	c.DynamicUpdate.WillShowUI = never
	c.Disks = disks{WillShowUI: onError, Disk: disk{
		added:    add(),
		WillWipe: true,
		Create: []newPartition{
			{added: add(), Order: systemPartition, Type: "EFI", Size: systemSize},
			{added: add(), Order: reservedPartition, Type: "MSR", Size: reservedSize},
			{added: add(), Order: windowsPartition, Type: "Primary", Extend: true},
		},
		Modify: []usedPartition{
			{added: add(), Order: systemPartition, PartitionID: systemPartition, Format: "FAT32", Label: "System"},
			{added: add(), Order: reservedPartition, PartitionID: reservedPartition},
			{added: add(), Order: windowsPartition, PartitionID: windowsPartition, Format: "NTFS", Label: "Windows",
				Letter: "C"},
		},
	}}
	c.Image = osImage{
		From:       metaData{added: add(), Key: "/IMAGE/INDEX", Value: strconv.Itoa(o.Index)},
		To:         installTo{PartitionID: windowsPartition},
		WillShowUI: onError,
	}
	c.UserData.AcceptEULA = true
	c.UserData.ProductKey.WillShowUI = never // evaluation media have no key, and Setup asks for no key
	if o.ProductKey != "" {
		c.UserData.ProductKey.Key, c.UserData.ProductKey.WillShowUI = o.ProductKey, onError
	}
	return c
}
