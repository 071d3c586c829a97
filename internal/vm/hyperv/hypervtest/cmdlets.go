package hypervtest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// cmdlet is a cmdlet with the parameters that Microsoft documents and the driver uses.
type cmdlet struct {
	params string
	run    func(*Host, arguments) ([]object, error)
}

// errWaits is the error of Stop-VM for a guest that ignores the request to shut down. The stand-in
// then waits, as the real cmdlet does.
var errWaits = errors.New("the guest does not shut down")

func cmdlets() map[string]cmdlet {
	return map[string]cmdlet{
		"Set-Variable": {"Name Value", func(*Host, arguments) ([]object, error) { return nil, nil }},
		"Get-Module":   {"ListAvailable Name", getModule},
		"Get-Command":  {"Name", getCommand},
		`Hyper-V\Get-VMHost`: {"", func(*Host, arguments) ([]object, error) {
			return []object{{"Name": "HOST"}}, nil
		}},
		`Hyper-V\Get-VMSwitch`: {"", getSwitch},
		`Hyper-V\New-VHD`:      {"Path SizeBytes Dynamic ParentPath Differencing", newVHD},
		`Hyper-V\Resize-VHD`:   {"Path SizeBytes", setting("Resize-VHD")},
		`Hyper-V\Get-VHD`:      {"Path", getVHD},
		`Hyper-V\Get-VM`:       {"Id", getVM},
		`Hyper-V\New-VM`:       {"Name Generation MemoryStartupBytes VHDPath Path SwitchName", newVM},
		`Hyper-V\Set-VM`: {"VM Notes ProcessorCount StaticMemory CheckpointType AutomaticCheckpointsEnabled " +
			"AutomaticStartAction AutomaticStopAction", setVM},
		`Hyper-V\Set-VMNetworkAdapter`: {"VM StaticMacAddress MacAddressSpoofing", setting("Set-VMNetworkAdapter")},
		`Hyper-V\Set-VMFirmware`:       {"VM EnableSecureBoot SecureBootTemplate", setting("Set-VMFirmware")},
		`Hyper-V\Set-VMKeyProtector`:   {"VM NewLocalKeyProtector", setting("Set-VMKeyProtector")},
		`Hyper-V\Enable-VMTPM`:         {"VM", enableTPM},
		`Hyper-V\Add-VMDvdDrive`:       {"VM Path", addDisc},
		`Hyper-V\Remove-VM`:            {"VM Force Confirm", removeVM},
		`Hyper-V\Start-VM`:             {"VM", startVM},
		`Hyper-V\Stop-VM`:              {"VM Force TurnOff Confirm", stopVM},
		`Hyper-V\Restart-VM`:           {"VM Force Confirm", restartVM},
		`Hyper-V\Checkpoint-VM`:        {"VM SnapshotName Passthru", checkpointVM},
		`Hyper-V\Get-VMSnapshot`:       {"VM Id", getSnapshot},
		`Hyper-V\Restore-VMSnapshot`:   {"VMSnapshot Confirm", restoreSnapshot},
		`Hyper-V\Remove-VMSnapshot`:    {"VMSnapshot Confirm", removeSnapshot},
		`Hyper-V\Get-VMNetworkAdapter`: {"VM", getAdapter},
		`NetTCPIP\Get-NetNeighbor`:     {"LinkLayerAddress ErrorAction", getNeighbour},
		`CimCmdlets\Get-CimInstance`:   {"Namespace ClassName Filter", getInstance},
		`CimCmdlets\Invoke-CimMethod`:  {"InputObject MethodName Arguments", invokeMethod},
	}
}

func guid() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (v *VM) object() object {
	uptime := time.Duration(0)
	if v.executes() {
		uptime = time.Since(v.Started)
	}
	return object{
		"Id": v.ID, "Name": v.Name, "State": v.State, "Status": "Operating normally", "Uptime": uptime, "Notes": v.Notes,
		"ConfigurationLocation": v.Path, "vm": v,
	}
}

func (v *VM) executes() bool { return v.State == "Running" || v.State == "Paused" }

// vm returns the VM that the parameter VM names, if the host still has this VM.
func (h *Host) vm(a arguments) (*VM, error) {
	o, err := a.object("VM")
	if err != nil {
		return nil, err
	}
	v, ok := o["vm"].(*VM)
	if !ok || !slices.Contains(h.VMs, v) {
		return nil, errors.New("cannot bind -VM: it is no virtual machine")
	}
	return v, nil
}

func getModule(h *Host, a arguments) (out []object, err error) {
	if slices.Contains(h.Modules, a.text("Name")) {
		out = []object{{"Name": a.text("Name")}}
	}
	return out, nil
}

// getCommand returns a cmdlet with its parameters.
func getCommand(h *Host, a arguments) ([]object, error) {
	known, ok := cmdlets()[a.text("Name")]
	if !ok {
		return nil, errors.New("the term is not recognized as the name of a cmdlet")
	}
	return []object{{"Parameters": slices.DeleteFunc(strings.Fields(known.params), func(name string) bool {
		return h.lacks(a.text("Name"), name)
	})}}, nil
}

// lacks reports whether the cmdlet of an older Windows has no such parameter: that of Windows Server 2016 for automatic
// checkpoints (hashicorp/vagrant#10251).
func (h *Host) lacks(cmdlet, parameter string) bool {
	return h.Server2016 && cmdlet == `Hyper-V\Set-VM` && parameter == "AutomaticCheckpointsEnabled"
}

func getSwitch(h *Host, _ arguments) (out []object, err error) {
	for _, name := range h.Switches {
		out = append(out, object{"Name": name})
	}
	return out, nil
}

func newVHD(_ *Host, a arguments) ([]object, error) {
	path := a.text("Path")
	text := ""
	switch {
	case filepath.Ext(path) != ".vhdx" || !filepath.IsAbs(path):
		return nil, fmt.Errorf("the path %s is not valid", path)
	case a.is("Differencing") == a.is("Dynamic"):
		return nil, errors.New("parameter set cannot be resolved")
	case a.is("Differencing"):
		if _, err := os.Stat(a.text("ParentPath")); err != nil {
			return nil, err
		}
		text = content(a.text("ParentPath"))
	case a.number("SizeBytes") < 3<<20:
		return nil, errors.New("the size is too small")
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = file.WriteString(text)
	return nil, errors.Join(err, file.Close())
}

func getVHD(_ *Host, a arguments) ([]object, error) {
	if _, err := os.Stat(a.text("Path")); err != nil {
		return nil, err
	}
	return []object{{"VhdFormat": "VHDX", "Size": int64(4 << 20)}}, nil
}

func getVM(h *Host, a arguments) (out []object, err error) {
	for _, v := range h.VMs {
		if id, ok := a["Id"]; !ok || strings.EqualFold(id.(string), v.ID) {
			out = append(out, v.object())
		}
	}
	if _, ok := a["Id"]; ok && len(out) == 0 {
		return nil, errors.New("a parameter is invalid: Hyper-V was unable to find a virtual machine with that id")
	}
	return out, nil
}

func newVM(h *Host, a arguments) ([]object, error) {
	switch {
	case a.number("Generation") != 2:
		return nil, errors.New("the driver makes generation 2")
	case strings.ContainsAny(a.text("Name"), `<>:"/\|?*`):
		return nil, fmt.Errorf("the name %s has characters that no folder can have", a.text("Name"))
	case !slices.Contains(h.Switches, a.text("SwitchName")):
		return nil, fmt.Errorf("there is no switch %s", a.text("SwitchName"))
	case a.number("MemoryStartupBytes") < 32<<20:
		return nil, errors.New("the memory is too little")
	}
	if _, err := os.Stat(a.text("VHDPath")); err != nil {
		return nil, err
	}
	v := &VM{
		ID: guid(), Name: a.text("Name"), State: "Off", Memory: a.number("MemoryStartupBytes"), CPUs: 1,
		Disk:     a.text("VHDPath"),
		Path:     filepath.Join(a.text("Path"), a.text("Name")),
		Settings: map[string]string{"New-VM SwitchName": a.text("SwitchName")},
	}
	h.VMs = append(h.VMs, v)
	return []object{v.object()}, os.MkdirAll(filepath.Join(v.Path, "Virtual Machines"), 0o700)
}

func setVM(h *Host, a arguments) ([]object, error) {
	v, err := h.vm(a)
	if err != nil {
		return nil, err
	}
	v.Notes, v.CPUs = a.text("Notes"), a.number("ProcessorCount")
	return setting("Set-VM")(h, a)
}

// setting returns a cmdlet that only stores its parameters in the settings of its VM.
func setting(name string) func(*Host, arguments) ([]object, error) {
	return func(h *Host, a arguments) ([]object, error) {
		if _, ok := a["VM"]; !ok {
			return nil, nil
		}
		v, err := h.vm(a)
		if err != nil {
			return nil, err
		}
		for key, value := range a {
			if key != "VM" {
				v.Settings[name+" "+key] = fmt.Sprint(value)
			}
		}
		return nil, nil
	}
}

func enableTPM(h *Host, a arguments) ([]object, error) {
	v, err := h.vm(a)
	if err == nil && v.Settings["Set-VMKeyProtector NewLocalKeyProtector"] == "" {
		err = errors.New("the virtual machine has no key protector")
	}
	if err != nil {
		return nil, err
	}
	v.Settings["Enable-VMTPM"] = "true"
	return nil, nil
}

func addDisc(h *Host, a arguments) ([]object, error) {
	v, err := h.vm(a)
	if err == nil {
		v.Discs = append(v.Discs, a.text("Path"))
	}
	return nil, err
}

func removeVM(h *Host, a arguments) ([]object, error) {
	v, err := h.vm(a)
	if err == nil && v.executes() {
		err = errors.New("the operation cannot be performed while the object is in its current state")
	}
	if err == nil {
		h.VMs = slices.DeleteFunc(h.VMs, func(other *VM) bool { return other == v })
	}
	return nil, err
}

func startVM(h *Host, a arguments) ([]object, error) {
	v, err := h.vm(a)
	if err == nil && v.executes() {
		err = errors.New("the operation cannot be performed while the object is in its current state")
	}
	if err == nil {
		v.State, v.Started = "Running", time.Now()
	}
	return nil, err
}

func stopVM(h *Host, a arguments) ([]object, error) {
	v, err := h.vm(a)
	switch {
	case err != nil:
		return nil, err
	case !v.executes():
		return nil, nil // the real cmdlet prints only a warning
	case !a.is("TurnOff") && slices.Contains(h.Ignoring, v.Notes):
		return nil, errWaits
	}
	v.State = "Off"
	return nil, nil
}

func restartVM(h *Host, a arguments) ([]object, error) {
	v, err := h.vm(a)
	if err == nil && !v.executes() {
		err = errors.New("the operation cannot be performed while the object is in its current state")
	}
	return nil, err
}

func (c *Checkpoint) object() object {
	return object{"Id": c.ID, "Name": c.Name, "CreationTime": c.Created, "SizeOfSystemFiles": int64(4096), "checkpoint": c}
}

func checkpointVM(h *Host, a arguments) ([]object, error) {
	v, err := h.vm(a)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{ID: guid(), Name: a.text("SnapshotName"), State: v.State, Disk: content(v.Disk), Created: time.Now()}
	v.Checkpoints = append(v.Checkpoints, c)
	if !a.is("Passthru") {
		return nil, nil
	}
	return []object{c.object()}, nil
}

func getSnapshot(h *Host, a arguments) (out []object, err error) {
	if _, ok := a["VM"]; ok {
		v, err := h.vm(a)
		if err != nil {
			return nil, err
		}
		for _, c := range v.Checkpoints {
			out = append(out, c.object())
		}
		return out, nil
	}
	for _, v := range h.VMs {
		for _, c := range v.Checkpoints {
			if c.ID == a.text("Id") {
				return []object{c.object()}, nil
			}
		}
	}
	return nil, errors.New("there is no checkpoint of that id")
}

// checkpoint returns the checkpoint that the parameter VMSnapshot names, and the VM of this
// checkpoint.
func (h *Host) checkpoint(a arguments) (*VM, *Checkpoint, error) {
	o, err := a.object("VMSnapshot")
	if err != nil {
		return nil, nil, err
	}
	for _, v := range h.VMs {
		if c, ok := o["checkpoint"].(*Checkpoint); ok && slices.Contains(v.Checkpoints, c) {
			return v, c, nil
		}
	}
	return nil, nil, errors.New("cannot bind -VMSnapshot")
}

func restoreSnapshot(h *Host, a arguments) ([]object, error) {
	v, c, err := h.checkpoint(a)
	if err != nil {
		return nil, err
	}
	v.State = "Off"
	if c.State == "Running" {
		v.State = "Saved"
	}
	return nil, os.WriteFile(v.Disk, []byte(c.Disk), 0o600)
}

func removeSnapshot(h *Host, a arguments) ([]object, error) {
	v, c, err := h.checkpoint(a)
	if err == nil {
		v.Checkpoints = slices.DeleteFunc(v.Checkpoints, func(other *Checkpoint) bool { return other == c })
	}
	return nil, err
}

func getAdapter(h *Host, a arguments) ([]object, error) {
	v, err := h.vm(a)
	if err != nil {
		return nil, err
	}
	return []object{{"IPAddresses": v.Addresses}}, nil
}

func getNeighbour(h *Host, a arguments) ([]object, error) {
	if ip, ok := h.Neighbour[a.text("LinkLayerAddress")]; ok {
		return []object{{"IPAddress": ip}}, nil
	}
	return nil, nil
}

func getInstance(h *Host, a arguments) (out []object, err error) {
	class := a.text("ClassName")
	if a.text("Namespace") != `root\virtualization\v2` {
		return nil, errors.New("invalid namespace")
	}
	if class == "Msvm_VirtualSystemManagementService" {
		return []object{{"class": class}}, nil
	}
	for _, v := range h.VMs {
		where := map[string]string{
			"Msvm_Keyboard": "SystemName='" + v.ID + "'",
			"Msvm_VirtualSystemSettingData": "VirtualSystemIdentifier='" + v.ID +
				"' AND VirtualSystemType='Microsoft:Hyper-V:System:Realized'",
		}[class]
		if where != "" && where == a.text("Filter") {
			out = append(out, object{"class": class, "vm": v})
		}
	}
	return out, nil
}

func invokeMethod(_ *Host, a arguments) ([]object, error) {
	o, err := a.object("InputObject")
	if err != nil {
		return nil, err
	}
	with, _ := a["Arguments"].(map[string]any)
	switch fmt.Sprint(o["class"], ".", a.text("MethodName")) {
	case "Msvm_Keyboard.TypeScancodes":
		v := o["vm"].(*VM)
		v.Typed = append(v.Typed, with["Scancodes"].([]byte)...)
		return []object{{"ReturnValue": 0}}, nil
	case "Msvm_VirtualSystemManagementService.GetVirtualSystemThumbnailImage":
		settings, _ := with["TargetSystem"].([]object)
		if len(settings) != 1 || settings[0]["class"] != "Msvm_VirtualSystemSettingData" {
			return []object{{"ReturnValue": 32773, "ImageData": []byte{}}}, nil
		}
		return []object{{"ReturnValue": 0,
			"ImageData": make([]byte, 2*with["WidthPixels"].(int64)*with["HeightPixels"].(int64))}}, nil
	}
	return nil, errors.New("invalid method")
}
