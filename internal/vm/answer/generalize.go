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
	SkipRearm int `xml:"SkipRearm"` // 1: the evaluation's days are not counted anew
}

type devices struct {
	component
	// PersistAllDeviceInstalls keeps devices installed: every VM of an image has the same.
	PersistAllDeviceInstalls bool `xml:"PersistAllDeviceInstalls"`
}
