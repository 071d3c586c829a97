//go:build swdtpause

package swap

import "time"

func afterRecord() { time.Sleep(200 * time.Millisecond) }
