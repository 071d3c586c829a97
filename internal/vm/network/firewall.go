package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// firewallTimeout bounds nft, which waits for locks of the kernel.
const firewallTimeout = 20 * time.Second

// checkFirewall finds out whether your machine's firewall may stop what passes between the VM and the containers. They
// are ports of one bridge. The kernel shows such frames to rules of iptables, and to those of nftables' families ip and
// inet, only while bridge-nf-call-iptables is 1 (kernel documentation, ip-sysctl: "pass bridged IPv4 traffic to
// iptables' chains"); it shows them to tables of the family bridge in any case.
func (f *Findings) checkFirewall(ctx context.Context) {
	if root := os.DirFS("/"); seesBridges(root) {
		f.add("firewall", finding.Warning, "net.bridge.bridge-nf-call-iptables is 1",
			"the firewall of this machine sees what passes between the VM and the containers, and its rules may drop it",
			"`sudo sysctl net.bridge.bridge-nf-call-iptables=0`; or, with "+allow(root, f.Place))
	}
	tables, err := bridgeTables(ctx)
	switch {
	case errors.Is(err, exec.ErrNotFound): // nft makes these tables
	case err != nil:
		f.add("firewall", finding.Info, err.Error(),
			"the firewall of this machine is not checked completely, since reading it needs root's rights",
			"run the check once with sudo")
	case len(tables) > 0:
		f.add("firewall", finding.Warning, "nft lists "+list(tables),
			"the firewall of this machine has rules for the ports of bridges, which may drop what the VM sends",
			"look for a rule that drops: `sudo nft list "+tables[0]+"`")
	}
}

// seesBridges reports whether the kernel shows frames between two ports of one bridge to the firewall's rules for IPv4.
func seesBridges(root fs.FS) bool {
	text, err := fs.ReadFile(root, "proc/sys/net/bridge/bridge-nf-call-iptables")
	return err == nil && strings.TrimSpace(string(text)) == "1" // no file: the module is not loaded
}

// allow returns the owner of this machine's rules, and its command that lets frames pass within the bridge.
func allow(root fs.FS, place Place) string {
	bridge := place.Bridge
	text, err := fs.ReadFile(root, "etc/ufw/ufw.conf")
	switch {
	case runs(root, "firewalld"):
		return "firewalld: `sudo firewall-cmd --zone=trusted --change-interface=" + bridge + "`"
	case err == nil && strings.Contains(string(text), "ENABLED=yes"):
		return fmt.Sprintf("ufw: `sudo ufw route allow in on %[1]s out on %[1]s`", bridge)
	case place.Docker != nil:
		return fmt.Sprintf("Docker's chain for rules of yours: `sudo iptables -I DOCKER-USER -i %[1]s -o %[1]s -j ACCEPT`", bridge)
	}
	return fmt.Sprintf("iptables: `sudo iptables -I FORWARD -i %[1]s -o %[1]s -j ACCEPT`", bridge)
}

// runs reports whether a process has this name.
func runs(root fs.FS, name string) bool {
	files, _ := fs.Glob(root, "proc/[0-9]*/comm") // the pattern is right
	for _, file := range files {
		if text, err := fs.ReadFile(root, file); err == nil && strings.TrimSpace(string(text)) == name {
			return true
		}
	}
	return false
}

// bridgeTables returns the tables of the family bridge, as `nft list` names them: "table bridge filter". This needs
// root's rights. The error is an exec.ErrNotFound if this machine has no nft.
func bridgeTables(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, firewallTimeout)
	defer cancel()
	program, err := exec.LookPath("nft")
	if errors.Is(err, exec.ErrNotFound) {
		program, err = exec.LookPath(filepath.Join("/usr/sbin", "nft")) // which the PATH of a user may lack
		if errors.Is(err, fs.ErrNotExist) {
			err = exec.ErrNotFound
		}
	}
	if err != nil {
		return nil, fmt.Errorf("run nft: %w", err)
	}
	var complaint bytes.Buffer
	command := exec.CommandContext(ctx, program, "list", "tables", "bridge")
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		words := strings.Join(strings.Fields(complaint.String()), " ") // of several lines
		return nil, fmt.Errorf("run nft: %w: %.*s", err, largestComplaint, words)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), nil
}
