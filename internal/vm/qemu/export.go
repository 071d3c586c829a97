package qemu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/wait"
)

var _ vm.Exporter = (*Driver)(nil)

// exportLimit bounds the writing of a disk: 100 GB on a slow disk take about an hour.
const exportLimit = 4 * time.Hour

// chain returns the options by which QEMU's programs open a VM's disk with its whole chain of
// images. No part of the chain is taken from an image's header.
func chain(m vm.Machine) (string, error) {
	if _, err := base(m); err != nil {
		return "", err
	}
	options := "driver=qcow2,file.driver=file,file.filename=" + commas(filesOf(m).disk())
	if m.Image.Base == "" {
		return options, nil
	}
	return options + ",backing.driver=qcow2,backing.file.driver=file,backing.file.filename=" + commas(m.Image.Base), nil
}

// Room returns the bytes that Export needs at most.
func (d *Driver) Room(ctx context.Context, m vm.Machine, _ vm.DiskFormat) (int64, error) {
	disk, err := chain(m)
	if err != nil {
		return 0, err
	}
	path, err := program(d.options.Image, installQEMU)
	if err != nil {
		return 0, err
	}
	// qemu-img cannot measure a VHDX, which needs about as many bytes as a qcow2.
	out, err := run(ctx, path, "measure", "--output=json", "-O", "qcow2", "--image-opts", disk)
	if err != nil {
		return 0, fmt.Errorf("measure the disk: %w", err)
	}
	var measured struct {
		Required int64 `json:"required"`
	}
	if err := json.Unmarshal([]byte(out), &measured); err != nil {
		return 0, fmt.Errorf("measure the disk: %w", err)
	}
	const spare = 64 << 20 // the VHDX's log and block table
	return measured.Required + measured.Required/20 + spare, nil
}

// Export writes the disk of a stopped VM into one file.
func (d *Driver) Export(
	ctx context.Context, m vm.Machine, file string, format vm.DiskFormat, done func(fraction float64),
) error {
	disk, err := chain(m)
	if err != nil {
		return err
	}
	path, err := program(d.options.Image, installQEMU)
	if err != nil {
		return err
	}
	args := []string{"convert", "-p", "-O", string(format)}
	if format == vm.VHDX {
		args = append(args, "-o", "subformat=dynamic")
	}
	ctx, cancel := context.WithTimeout(ctx, exportLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append(args, "--image-opts", disk, file)...)
	var messages limited
	cmd.Stdout, cmd.Stderr, cmd.Env = &percents{done: done}, &messages, environment()
	err = wait.Program(cmd)
	var exit *exec.ExitError
	switch text := strings.TrimSpace(string(messages)); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("write the disk: %w", context.Cause(ctx))
	case errors.As(err, &exit) && text != "":
		return fmt.Errorf("write the disk: %w: %s", err, text)
	}
	return fmt.Errorf("write the disk: %w", err)
}

// percents reads the progress that qemu-img reports, such as "    (12.34/100%)". A carriage return
// follows each report.
type percents struct {
	done func(fraction float64)
	line []byte
}

// maxPercents is longer than one report of the progress, in bytes.
const maxPercents = 64

func (p *percents) Write(data []byte) (int, error) {
	for _, c := range data {
		if c != '\r' && c != '\n' {
			if len(p.line) < maxPercents {
				p.line = append(p.line, c)
			}
			continue
		}
		text, _, _ := bytes.Cut(bytes.TrimLeft(p.line, " ("), []byte("/"))
		if percent, err := strconv.ParseFloat(string(text), 64); err == nil && percent >= 0 && percent <= 100 {
			p.done(percent / 100)
		}
		p.line = p.line[:0]
	}
	return len(data), nil
}
