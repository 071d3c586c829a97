package hyperv

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"

	"github.com/swdt-dev/swdt/internal/node/powershell"
	"github.com/swdt-dev/swdt/internal/vm"
)

const (
	// namespace is the WMI namespace with Hyper-V's objects. The driver uses the objects for which
	// Hyper-V's PowerShell module has no cmdlets.
	namespace = `root\virtualization\v2`
	// width and height are the size of a screenshot in pixels. Hyper-V scales the screen to this
	// size.
	width, height = 1024, 768
	// codesAtOnce bounds the bytes of scan codes that one call types.
	codesAtOnce = 64
)

// instance returns the call of the cmdlet that returns the objects of a class that match a filter;
// the filter "" matches all objects. The IDs in filters are GUIDs, so the filters need no quoting.
func instance(class, where string) powershell.Cmdlet {
	params := []powershell.Param{
		powershell.With("Namespace", powershell.String(namespace)), powershell.With("ClassName", powershell.String(class)),
	}
	if where != "" {
		params = append(params, powershell.With("Filter", powershell.String(where)))
	}
	return powershell.Call(`CimCmdlets\Get-CimInstance`, params...)
}

// invoke returns the call of a method of an object.
func invoke(object powershell.Value, method string, arguments powershell.Table) powershell.Cmdlet {
	return powershell.Call(`CimCmdlets\Invoke-CimMethod`, powershell.With("InputObject", object),
		powershell.With("MethodName", powershell.String(method)), powershell.With("Arguments", arguments))
}

// Screenshot writes the VM's screen as PNG.
func (d *Driver) Screenshot(ctx context.Context, m vm.Machine, w io.Writer) error {
	now, err := d.running(ctx, m)
	if err != nil {
		return fmt.Errorf("take a screenshot: %w", err)
	}
	var found struct {
		Screens powershell.List[struct {
			ReturnValue uint32
			ImageData   string // the pixels in base64, 2 bytes for each pixel
		}]
	}
	const settings = powershell.Variable("settings")
	service := powershell.Result{instance("Msvm_VirtualSystemManagementService", "")}
	err = d.ask(ctx, "take a screenshot", &found,
		powershell.Keep(string(settings), instance("Msvm_VirtualSystemSettingData",
			"VirtualSystemIdentifier='"+now.ID+"' AND VirtualSystemType='Microsoft:Hyper-V:System:Realized'")),
		powershell.AsJSON(map[string]powershell.Pipeline{"Screens": {
			invoke(service, "GetVirtualSystemThumbnailImage", powershell.Table{
				"TargetSystem": settings, "WidthPixels": powershell.Typed{Type: "uint16", Number: width},
				"HeightPixels": powershell.Typed{Type: "uint16", Number: height},
			}),
			powershell.Select(powershell.Of("ReturnValue", powershell.AsIs), powershell.Of("ImageData", powershell.AsBase64)),
		}}))
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
	var typed struct {
		Results powershell.List[struct{ ReturnValue uint32 }]
	}
	keyboard := powershell.Result{instance("Msvm_Keyboard", "SystemName='"+now.ID+"'")}
	err := d.ask(ctx, "press keys", &typed, powershell.AsJSON(map[string]powershell.Pipeline{"Results": {
		invoke(keyboard, "TypeScancodes", powershell.Table{"Scancodes": powershell.Bytes(codes)}),
		powershell.Select(powershell.Of("ReturnValue", powershell.AsIs)),
	}}))
	if err == nil && (len(typed.Results) != 1 || typed.Results[0].ReturnValue != 0) {
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
