package answer

// generalizing returns the settings for sysprep.
func generalizing() []any {
	return []any{
		licensing{component: named("Microsoft-Windows-Security-SPP"), SkipRearm: 1},
		devices{component: named("Microsoft-Windows-PnpSysprep"), PersistAllDeviceInstalls: true},
	}
}

type licensing struct {
	component
	SkipRearm int `xml:"SkipRearm"` // 1 means that sysprep does not restart the evaluation period
}

type devices struct {
	component
	// PersistAllDeviceInstalls keeps devices installed, since all VMs of an image have the same
	// devices.
	PersistAllDeviceInstalls bool `xml:"PersistAllDeviceInstalls"`
}
