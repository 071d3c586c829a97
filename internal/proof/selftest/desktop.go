package selftest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	terminalServer = `HKLM\SYSTEM\CurrentControlSet\Control\Terminal Server`
	denyValue      = "fDenyTSConnections"
	// desktopRecord has the value that was there before, for a run that is killed in between.
	desktopRecord = folder + `\remote-desktop-before.txt`
)

// remoteDesktop is the setting that tryDesktop changes. Its removal puts back what was there before.
func remoteDesktop() artifact {
	return artifact{what: "the changed setting of Remote Desktop", recorded: true, remove: func(ctx context.Context, n *node.Node) (bool, error) {
		text, err := smallfile.Read(ctx, n, desktopRecord)
		if errors.Is(err, fault.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		before, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
		if err != nil {
			return true, fmt.Errorf("read %s: %w; set Remote Desktop as you want it with `swdt setup`, and remove the file",
				desktopRecord, err)
		}
		if err := setDeny(ctx, n, before); err != nil {
			return true, err
		}
		return true, smallfile.Remove(ctx, n, desktopRecord)
	}}
}

func deny(ctx context.Context, n *node.Node) (uint64, error) {
	value, err := n.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: terminalServer, Name: denyValue})
	return value.GetInteger(), err
}

func setDeny(ctx context.Context, n *node.Node, value uint64) error {
	_, err := n.Registry.Set(ctx, &agentv1.RegistrySetRequest{Key: terminalServer,
		Value: &agentv1.RegistryValue{Name: denyValue, Type: "REG_DWORD", Integer: value}})
	return err
}

// tryDesktop allows or denies connections of Remote Desktop for a moment, whichever is not set.
func tryDesktop(ctx context.Context, t *trial) error {
	before, err := deny(ctx, t.node)
	if errors.Is(err, fault.ErrNotExist) {
		return impossible("the node has no setting of Remote Desktop")
	}
	if err != nil {
		return err
	}
	if _, err := t.node.Files.MakeFolder(ctx, &agentv1.MakeFolderRequest{Path: folder}); err != nil {
		return err
	}
	if err := smallfile.Replace(ctx, t.node, desktopRecord, []byte(strconv.FormatUint(before, 10)), ""); err != nil {
		return err
	}
	if err := setDeny(ctx, t.node, 1-min(before, 1)); err != nil {
		return err
	}
	during, err := deny(ctx, t.node)
	if err != nil {
		return err
	}
	if err := expect("the changed setting", during, 1-min(before, 1)); err != nil {
		return err
	}
	if _, err := remoteDesktop().remove(ctx, t.node); err != nil {
		return err
	}
	after, err := deny(ctx, t.node)
	if err != nil {
		return err
	}
	return expect("the setting that was put back", after, before)
}
