package windows

import (
	"golang.org/x/sys/windows"
)

// Signal opens an event that exists, with the right to set it alone.
func (processes) Signal(event string) error {
	name, err := windows.UTF16PtrFromString(event)
	if err != nil {
		return failed(err, "set the event %s", event)
	}
	handle, err := windows.OpenEvent(windows.EVENT_MODIFY_STATE, false, name)
	if err != nil {
		return failed(err, "open the event %s", event)
	}
	defer windows.CloseHandle(handle)
	return failed(windows.SetEvent(handle), "set the event %s", event)
}
