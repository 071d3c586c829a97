package hypervtest

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// errWaits is the error of the verb stop for a guest that ignores the request to shut down. The stand-in then waits, as
// Stop-VM does.
var errWaits = errors.New("the guest does not shut down")

// errState is Hyper-V's error for a VM that runs, or does not.
var errState = errors.New("the operation cannot be performed while the object is in its current state")

// result is the object that a verb prints; nil: nothing.
type result map[string]any

// verbs are the verbs of the script.
func verbs() map[string]func(*Host, request) (result, error) {
	return map[string]func(*Host, request) (result, error){
		"modules":  func(h *Host, _ request) (result, error) { return result{"Modules": h.Modules}, nil },
		"hosts":    func(*Host, request) (result, error) { return result{"Hosts": []string{"HOST"}}, nil },
		"switches": func(h *Host, _ request) (result, error) { return result{"Switches": h.Switches}, nil },
		"image":    image, "list": list, "newDisk": newDisk, "newDiskOver": newDiskOver, "new": newVM, "remove": remove,
		"start": start, "stop": stop, "turnOff": turnOff, "restart": restart, "checkpoints": checkpoints, "save": save,
		"restore": restore, "removeCheckpoint": removeCheckpoint, "addresses": addresses, "screen": screen, "keys": keys,
	}
}

// answer does what a request asks for.
func (h *Host) answer(r request) (result, error) {
	run, ok := verbs()[r.verb]
	if !ok {
		return nil, fmt.Errorf("the stand-in has no verb %s", r.verb)
	}
	if err := r.checkArguments(); err != nil {
		return nil, err
	}
	fault, late := strings.CutPrefix(h.Faults[r.verb], "late: ")
	if fault != "" && !late {
		return nil, errors.New(fault)
	}
	out, err := run(h, r)
	if err == nil {
		err = r.checkResult(out)
	}
	if err == nil && fault != "" {
		err = errors.New(fault)
	}
	return out, err
}

func (r request) string(name string) string { text, _ := r.arguments[name].(string); return text }

func (r request) number(name string) float64 { n, _ := r.arguments[name].(float64); return n }

// list returns the elements of an argument.
func (r request) list(name string) []any { all, _ := r.arguments[name].([]any); return all }

func guid() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (v *VM) executes() bool { return v.State == "Running" || v.State == "Paused" }

// vm returns the VM that a request names.
func (h *Host) vm(r request) (*VM, error) {
	for _, v := range h.VMs {
		if strings.EqualFold(v.ID, r.string("id")) {
			return v, nil
		}
	}
	return nil, errors.New("a parameter is invalid: Hyper-V was unable to find a virtual machine with that id")
}

func image(_ *Host, r request) (result, error) {
	_, err := os.Stat(r.string("path"))
	return result{"Images": []result{{"VhdFormat": "VHDX", "Size": 4 << 20}}}, err
}

func list(h *Host, _ request) (result, error) {
	all := []result{}
	for _, v := range h.VMs {
		uptime := 0.0
		if v.executes() {
			uptime = time.Since(v.Started).Seconds()
		}
		all = append(all, result{"Id": v.ID, "Name": v.Name, "State": v.State, "Uptime": uptime, "Notes": v.Notes,
			"ConfigurationLocation": v.Path})
	}
	return result{"VMs": all}, nil
}

func newDisk(_ *Host, r request) (result, error) {
	if r.number("size") < 3<<20 {
		return nil, errors.New("the size is too small")
	}
	return nil, makeDisk(r.string("path"), "")
}

func newDiskOver(_ *Host, r request) (result, error) {
	if _, err := os.Stat(r.string("base")); err != nil {
		return nil, err
	}
	return nil, makeDisk(r.string("path"), content(r.string("base")))
}

func makeDisk(path, text string) error {
	if filepath.Ext(path) != ".vhdx" || !filepath.IsAbs(path) {
		return fmt.Errorf("the path %s is not valid", path)
	}
	file, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

func newVM(h *Host, r request) (result, error) {
	switch {
	case strings.ContainsAny(r.string("name"), `<>:"/\|?*`):
		return nil, fmt.Errorf("the name %s has characters that no folder can have", r.string("name"))
	case !slices.Contains(h.Switches, r.string("switch")):
		return nil, fmt.Errorf("there is no switch %s", r.string("switch"))
	case r.number("memory") < 32<<20:
		return nil, errors.New("the memory is too little")
	case len(r.string("mac")) != 12:
		return nil, errors.New("the MAC address is not valid")
	}
	if _, err := os.Stat(r.string("disk")); err != nil {
		return nil, err
	}
	v := &VM{ID: guid(), Name: r.string("name"), State: "Off", Notes: r.string("notes"), Disk: r.string("disk"),
		Path: filepath.Join(r.string("folder"), r.string("name"))}
	h.VMs = append(h.VMs, v)
	return result{"VMs": []result{{"Id": v.ID}}}, os.MkdirAll(filepath.Join(v.Path, "Virtual Machines"), 0o700)
}

func remove(h *Host, r request) (result, error) {
	v, err := h.vm(r)
	if err == nil && v.executes() {
		err = errState
	}
	if err == nil {
		h.VMs = slices.DeleteFunc(h.VMs, func(other *VM) bool { return other == v })
	}
	return nil, err
}

func start(h *Host, r request) (result, error) {
	v, err := h.vm(r)
	if err == nil && v.executes() {
		err = errState
	}
	if err == nil {
		v.State, v.Started = "Running", time.Now()
	}
	return nil, err
}

func stop(h *Host, r request) (result, error) {
	if v, err := h.vm(r); err == nil && v.executes() && slices.Contains(h.Ignoring, v.Notes) {
		return nil, errWaits
	}
	return turnOff(h, r)
}

func turnOff(h *Host, r request) (result, error) {
	v, err := h.vm(r)
	if err == nil && v.executes() { // for another one, the real cmdlet prints only a warning
		v.State = "Off"
	}
	return nil, err
}

func restart(h *Host, r request) (result, error) {
	v, err := h.vm(r)
	if err == nil && !v.executes() {
		err = errState
	}
	return nil, err
}

func checkpoints(h *Host, r request) (result, error) {
	v, err := h.vm(r)
	if err != nil {
		return nil, err
	}
	all := []result{}
	for _, c := range v.Checkpoints {
		all = append(all, result{"Id": c.ID, "Name": c.Name, "SizeOfSystemFiles": 4096,
			"CreationTime": c.Created.UTC().Format("2006-01-02T15:04:05.0000000Z")})
	}
	return result{"Checkpoints": all}, nil
}

func save(h *Host, r request) (result, error) {
	v, err := h.vm(r)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{ID: guid(), Name: r.string("name"), State: v.State, Disk: content(v.Disk), Created: time.Now()}
	v.Checkpoints = append(v.Checkpoints, c)
	return result{"Checkpoints": []result{{"Id": c.ID}}}, nil
}

// checkpoint returns the checkpoint that a request names, and its VM.
func (h *Host) checkpoint(r request) (*VM, *Checkpoint, error) {
	for _, v := range h.VMs {
		for _, c := range v.Checkpoints {
			if c.ID == r.string("checkpoint") {
				return v, c, nil
			}
		}
	}
	return nil, nil, errors.New("there is no checkpoint of that id")
}

func restore(h *Host, r request) (result, error) {
	v, c, err := h.checkpoint(r)
	if err != nil {
		return nil, err
	}
	v.State = "Off"
	if c.State == "Running" {
		v.State = "Saved"
	}
	return nil, os.WriteFile(v.Disk, []byte(c.Disk), 0o600)
}

func removeCheckpoint(h *Host, r request) (result, error) {
	v, c, err := h.checkpoint(r)
	if err == nil {
		v.Checkpoints = slices.DeleteFunc(v.Checkpoints, func(other *Checkpoint) bool { return other == c })
	}
	return nil, err
}

func addresses(h *Host, r request) (result, error) {
	v, err := h.vm(r)
	if err != nil {
		return nil, err
	}
	neighbours := []string{}
	if ip, ok := h.Neighbour[r.string("mac")]; ok {
		neighbours = append(neighbours, ip)
	}
	return result{"Adapters": v.Addresses, "Neighbours": neighbours}, nil
}

func screen(h *Host, r request) (result, error) {
	_, err := h.vm(r)
	pixels := make([]byte, 2*int(r.number("width"))*int(r.number("height")))
	return result{"Screens": []result{{"ReturnValue": 0, "ImageData": base64.StdEncoding.EncodeToString(pixels)}}}, err
}

func keys(h *Host, r request) (result, error) {
	v, err := h.vm(r)
	if err != nil {
		return nil, err
	}
	for _, code := range r.list("codes") {
		n, _ := code.(float64)
		v.Typed = append(v.Typed, byte(n))
	}
	return result{"Results": []int{0}}, nil
}
