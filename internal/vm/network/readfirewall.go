package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// firewallTimeout bounds iptables-save and nft, which wait for locks of the kernel.
	firewallTimeout = 20 * time.Second
	// largestRuleset bounds the output of each of these programs, in bytes.
	largestRuleset = 64 << 20
)

// ReadFirewall reads the rules of iptables and nftables, which are your machine's firewall. This
// needs root's rights. proc is the file system /proc. The error is an exec.ErrNotFound if your
// machine has neither iptables nor nft. With any other error, the firewall has the rules that could
// be read.
func ReadFirewall(ctx context.Context, proc fs.FS) (*Firewall, error) {
	ctx, cancel := context.WithTimeout(ctx, firewallTimeout)
	defer cancel()
	f, err := readIPTables(ctx)
	errNFT := f.readNFT(ctx)
	f.blindToBridges = !FiltersBridges(proc)
	switch {
	case errors.Is(err, exec.ErrNotFound) && errors.Is(errNFT, exec.ErrNotFound):
		return f, err
	case errors.Is(err, exec.ErrNotFound):
		return f, errNFT
	case errors.Is(errNFT, exec.ErrNotFound):
		return f, err
	case err != nil && errNFT != nil:
		return f, fmt.Errorf("%w; %w", err, errNFT)
	}
	return f, errors.Join(err, errNFT)
}

func readIPTables(ctx context.Context) (*Firewall, error) {
	out, err := output(ctx, "iptables-save")
	if err != nil {
		return newFirewall(), err
	}
	f, err := ParseFirewall(bytes.NewReader(out))
	if err != nil {
		return newFirewall(), err
	}
	return f, nil
}

// readNFT adds the rules of nftables.
func (f *Firewall) readNFT(ctx context.Context) error {
	ruleset, err := output(ctx, "nft", "-j", "list", "ruleset")
	if err != nil {
		return err
	}
	// This output is for messages: it has handles, but neither counters nor the elements of sets.
	text, err := output(ctx, "nft", "-a", "-s", "-t", "list", "ruleset")
	if err != nil {
		return err
	}
	texts, err := parseNFTTexts(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return f.addNFT(bytes.NewReader(ruleset), texts)
}

// output runs a program that needs root's rights, and returns its output, at most largestRuleset
// bytes. It also looks for the program in /usr/sbin, which the PATH of a user may lack. The error
// is an exec.ErrNotFound if the program is missing.
func output(ctx context.Context, program string, args ...string) ([]byte, error) {
	path, err := exec.LookPath(program)
	if errors.Is(err, exec.ErrNotFound) {
		path, err = exec.LookPath(filepath.Join("/usr/sbin", program))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("run %s: %w", program, exec.ErrNotFound)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", program, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends a program that prints more than the limit
	var complaint bytes.Buffer
	command := exec.CommandContext(ctx, path, args...)
	command.Stderr = &complaint
	pipe, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("run %s: %w", program, err)
	}
	out, err := io.ReadAll(io.LimitReader(pipe, largestRuleset+1))
	if len(out) > largestRuleset {
		cancel()
		err = fmt.Errorf("it printed more than %d bytes", largestRuleset)
	}
	if ended := command.Wait(); err == nil {
		err = ended
	}
	if err != nil {
		words := strings.Join(strings.Fields(complaint.String()), " ") // of several lines
		return nil, fmt.Errorf("run %s: %w: %.*s", program, err, largestComplaint, words)
	}
	return out, nil
}
