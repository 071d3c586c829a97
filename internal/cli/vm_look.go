package cli

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
)

func (a *app) vmAddressCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use: "address [flags]", Aliases: []string{"ip"}, Short: "Print the address of a VM's SSH server",
		Long: `Prints the addresses at which the SSH server of a running VM may be, the best
first, and how each is known. An address is no proof that the server answers.`,
		Example: examples("vm address", "", "vm address -o jsonpath='{.addresses[0].port}'", ""),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withVM(cmd.Context(), func(ctx context.Context, machines *vm.Machines, name string) error {
				all, err := machines.Addresses(ctx, name)
				if err != nil {
					return err
				}
				list := vm.AddressList{VM: name, Addresses: all}
				return a.print(list, func(p *ui.Page) error { return list.WriteText(p) })
			})
		},
	})
}

func (a *app) vmConsoleCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use: "console [flags]", Aliases: []string{"vnc"}, Short: "Show where to look at a VM's screen",
		Long: `Prints where a viewer of yours connects to see a running VM's screen and to
type, such as the socket of its VNC server, which only you can open. If
spec.machine.display.vnc is "port", it prints the port of 127.0.0.1 and the file
with the password, which changes at each start.`,
		Example: examples("vm console", "", `vm console -o jsonpath='{.consoles[0].address}'`, "for a viewer"),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withVM(cmd.Context(), func(ctx context.Context, machines *vm.Machines, name string) error {
				all, err := machines.Consoles(ctx, name)
				if err != nil {
					return err
				}
				list := vm.ConsoleList{VM: name, Consoles: all}
				return a.print(list, func(p *ui.Page) error { return list.WriteText(p) })
			})
		},
	})
}

func (a *app) vmScreenshotCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use: "screenshot FILE.png", Short: "Save a picture of a VM's screen",
		Long: `Saves the screen of a running VM as PNG, from its firmware on: it shows why a
guest does not start. An existing file is replaced.`,
		Example: examples("vm screenshot screen.png", ""),
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutFile("screenshot", args[0]); err != nil {
				return err
			}
			return a.withVM(cmd.Context(), func(ctx context.Context, machines *vm.Machines, name string) error {
				return a.saveScreen(ctx, machines, name, args[0])
			})
		},
	})
}

func (a *app) saveScreen(ctx context.Context, machines *vm.Machines, name, path string) error {
	var screen bytes.Buffer
	if err := machines.Screenshot(ctx, name, &screen); err != nil {
		return err
	}
	shot := vm.Screen{VM: name, File: path, Size: int64(screen.Len())}
	if err := localfile.Replace(path, screen.Bytes()); err != nil {
		return fmt.Errorf("save the screen: %w", err)
	}
	return a.print(shot, func(p *ui.Page) error { return shot.WriteText(p) })
}

func (a *app) vmKeysCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use: "keys KEY…", Short: "Press keys of a VM's keyboard",
		Long: `Presses keys in a running VM, one after the other. A key is a letter, a digit or a
name of QEMU's, such as ret, esc, tab, spc, up, f8; several at once are joined by
dashes.`,
		Example: examples("vm keys ret", "", "vm keys ctrl-alt-delete", "", "vm keys d i r ret", ""),
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, keys []string) error {
			return a.withVM(cmd.Context(), func(ctx context.Context, machines *vm.Machines, name string) error {
				if err := machines.SendKeys(ctx, name, keys); err != nil {
					return err
				}
				pressed := vm.Pressed{VM: name, Keys: keys}
				return a.print(pressed, func(p *ui.Page) error { return pressed.WriteText(p) })
			})
		},
	})
}
