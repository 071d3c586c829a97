package qemu

// LimitSerialLog sets the size of each of the two files of a serial port's log, in bytes.
func (d *Driver) LimitSerialLog(bytes int) { d.serialLog = bytes }
