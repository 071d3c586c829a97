//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Events of Linux' input devices: 24 bytes, of which the first 16 are a time.
const (
	eventSize = 24
	eventKey  = 1
	keyPower  = 116
)

// watchButtons powers the guest off when the power button is pressed, as Windows does.
func (g *guest) watchButtons(ctx context.Context) {
	names, err := filepath.Glob("/sys/class/input/event*/device/name")
	if err != nil {
		g.console.print("list the buttons: %v", err)
		return
	}
	for _, file := range names {
		name, err := os.ReadFile(file)
		if err != nil || strings.TrimSpace(string(name)) != "Power Button" {
			continue
		}
		device := "/dev/input/" + filepath.Base(filepath.Dir(filepath.Dir(file)))
		go func() {
			err := pressed(device, keyPower)
			if err == nil {
				g.console.print("power button")
				g.end(powerOff)
				return
			}
			g.console.print("watch the power button: %v", err)
		}()
	}
}

// pressed waits until a key of an input device is pressed. If key is 0, any key counts.
func pressed(device string, key uint16) error {
	f, err := os.Open(device)
	if err != nil {
		return err
	}
	defer f.Close()
	event := make([]byte, eventSize)
	for {
		if _, err := io.ReadFull(f, event); err != nil {
			return err
		}
		kind, code := binary.LittleEndian.Uint16(event[16:]), binary.LittleEndian.Uint16(event[18:])
		if kind == eventKey && (key == 0 || code == key) && binary.LittleEndian.Uint32(event[20:]) == 1 {
			return nil
		}
	}
}
