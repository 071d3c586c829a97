package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// wanted returns the kernel modules that a guest needs for QEMU's disks, network cards, CDs and channels, and for
// the power button.
func wanted() []string {
	return []string{
		"virtio_pci", "virtio_blk", "ahci", "sd_mod", "sr_mod", "isofs", "udf", "virtio_net", "e1000e",
		"virtio_console", "virtio_rng", "button", "evdev",
	}
}

// kernel is an unpacked kernel with the modules that a guest loads, each after the modules that it needs.
type kernel struct {
	image   string
	modules []string
}

func findKernel(folder string) (kernel, error) {
	images, err := filepath.Glob(filepath.Join(folder, "boot", "vmlinuz-*"))
	if err != nil || len(images) != 1 {
		return kernel{}, fmt.Errorf("find a kernel below %s: %d files boot/vmlinuz-*, 1 expected", folder, len(images))
	}
	files := map[string]string{}
	err = filepath.WalkDir(filepath.Join(folder, "lib", "modules"), func(path string, _ fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(filepath.Base(path), ".ko"); ok {
			files[strings.ReplaceAll(name, "-", "_")] = path
		}
		return err
	})
	if err != nil {
		return kernel{}, fmt.Errorf("find the kernel's modules: %w", err)
	}
	k := kernel{image: images[0]}
	ready := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		if ready[name] {
			return nil
		}
		ready[name] = true
		file, ok := files[name]
		if !ok {
			return fmt.Errorf("the kernel of %s has no module %s", folder, name)
		}
		needed, err := needs(file)
		if err != nil {
			return err
		}
		for _, other := range needed {
			if err := add(other); err != nil {
				return err
			}
		}
		k.modules = append(k.modules, file)
		return nil
	}
	for _, name := range wanted() {
		if err := add(name); err != nil {
			return kernel{}, err
		}
	}
	return k, nil
}

// needs returns the modules that a module's file names in its section .modinfo.
func needs(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read a module: %w", err)
	}
	module, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read module %s: %w", file, err)
	}
	section := module.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("read module %s: it has no section .modinfo", file)
	}
	info, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("read module %s: %w", file, err)
	}
	var all []string
	for line := range strings.SplitSeq(string(info), "\x00") {
		// Other lists of a module name modules that are only useful together with the module. The guest
		// loads only the modules on which the module depends.
		list, ok := strings.CutPrefix(line, "depends=")
		if !ok || list == "" {
			continue
		}
		for name := range strings.SplitSeq(list, ",") {
			all = append(all, strings.ReplaceAll(name, "-", "_"))
		}
	}
	return all, nil
}
