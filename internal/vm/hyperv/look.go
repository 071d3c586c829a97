package hyperv

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"

	"github.com/swdt-dev/swdt/internal/vm"
)

const (
	// width and height are the size of a screenshot in pixels. Hyper-V scales the screen to this
	// size.
	width, height = 1024, 768
	// codesAtOnce bounds the bytes of scan codes that one call types.
	codesAtOnce = 64
)

// Screenshot writes the VM's screen as PNG.
func (d *Driver) Screenshot(ctx context.Context, m vm.Machine, w io.Writer) error {
	now, err := d.running(ctx, m)
	if err != nil {
		return fmt.Errorf("take a screenshot: %w", err)
	}
	var found struct {
		Screens list[struct {
			ReturnValue uint32
			ImageData   string // the pixels in base64, 2 bytes for each pixel
		}]
	}
	err = d.ask(ctx, "take a screenshot", "screen", arguments{"id": now.ID, "width": width, "height": height}, &found)
	if err != nil {
		return err
	}
	if len(found.Screens) != 1 || found.Screens[0].ReturnValue != 0 {
		return fmt.Errorf("take a screenshot: Hyper-V returns no screen: %d", len(found.Screens))
	}
	pixels, err := base64.StdEncoding.DecodeString(found.Screens[0].ImageData)
	if err == nil {
		err = writePNG(w, pixels, width, height)
	}
	if err != nil {
		return fmt.Errorf("take a screenshot: %w", err)
	}
	return nil
}

// SendKeys presses keys one after the other. It checks all names before it presses the first key.
func (d *Driver) SendKeys(ctx context.Context, m vm.Machine, keys []string) error {
	now, err := d.running(ctx, m)
	if err != nil {
		return fmt.Errorf("press keys: %w", err)
	}
	if len(keys) > maxKeys {
		return fmt.Errorf("press keys: %d keys are more than %d; send them in parts", len(keys), maxKeys)
	}
	var parts [][]byte
	for _, combination := range keys {
		codes, err := scanCodes(combination)
		if err != nil {
			return fmt.Errorf("press keys: %w", err)
		}
		if last := len(parts) - 1; last >= 0 && len(parts[last])+len(codes) <= codesAtOnce {
			parts[last] = append(parts[last], codes...)
		} else {
			parts = append(parts, codes)
		}
	}
	for _, part := range parts {
		if err := d.typeCodes(ctx, now, part); err != nil {
			return err
		}
	}
	return nil
}

// typeCodes sends scan codes to the VM's keyboard in one call.
func (d *Driver) typeCodes(ctx context.Context, now machine, codes []byte) error {
	numbers := make([]int, len(codes)) // a []byte would become base64
	for i, code := range codes {
		numbers[i] = int(code)
	}
	var typed struct{ Results list[uint32] }
	err := d.ask(ctx, "press keys", "keys", arguments{"id": now.ID, "codes": numbers}, &typed)
	if err == nil && (len(typed.Results) != 1 || typed.Results[0] != 0) {
		err = fmt.Errorf("press keys: Hyper-V refuses them: %v", typed.Results)
	}
	return err
}

// Consoles returns the command that opens the VM's window.
func (d *Driver) Consoles(ctx context.Context, m vm.Machine) ([]vm.Console, error) {
	now, err := d.running(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("find the consoles: %w", err)
	}
	return []vm.Console{{Kind: "vmconnect", Address: "vmconnect.exe localhost -G " + now.ID}}, nil
}
