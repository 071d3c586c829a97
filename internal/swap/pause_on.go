//go:build swdtpause

package swap

import "time"

func afterRecord() { time.Sleep(400 * time.Millisecond) }
