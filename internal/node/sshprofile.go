package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/text/encoding/unicode"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
)

// profile asks the node for the folder of the account's own profile, and returns it as Windows spells it. sshd sets the
// variable to the profile for each session, whatever folder the default shell is in. cmd's switch /u keeps all characters:
// otherwise cmd prints the path in the code page of the machine's console.
func (c sshConnection) profile(ctx context.Context) (string, error) {
	const attempt = "find the profile of the account on the node"
	limited, cancel := context.WithTimeout(ctx, c.way.agentTimeout)
	defer cancel()
	printed, err := c.printed(limited, c.way.shell.cmd("/u /c", "set USERPROFILE"))
	profile, ok := profileIn(printed)
	if err == nil && !ok && !c.way.shell.posix.Swap(true) { // Git's bash starts cmd without its switches
		if printed, err = c.printed(limited, c.way.shell.cmd("/u /c", "set USERPROFILE")); err == nil {
			profile, ok = profileIn(printed)
		}
		c.way.shell.posix.Store(ok)
	}
	switch {
	case ok:
		return profile, nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", &InstallError{Attempt: attempt, Err: err}
	}
	return "", &InstallError{Attempt: attempt, Err: fmt.Errorf("`cmd /u /c set USERPROFILE` printed %q; does the "+
		"default shell run cmd?", windowstext.Brief(windowstext.Console(printed)))}
}

// printed runs a command line without input, and returns the first 64 KiB of its output.
func (c sshConnection) printed(ctx context.Context, line string) ([]byte, error) {
	process, err := c.Client.Start(ctx, line)
	if err != nil {
		return nil, err
	}
	defer process.Close()
	defer context.AfterFunc(ctx, func() { process.Close() })()
	process.Stdin.Close()
	printed, err := io.ReadAll(io.LimitReader(process.Stdout, handshake.MaxNoise))
	return printed, errors.Join(err, ctx.Err())
}

// profileIn finds the variable in what cmd has printed in UTF-16, after the text of a shell's profile.
func profileIn(printed []byte) (profile string, ok bool) {
	wide := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	name, err := wide.NewEncoder().Bytes([]byte("USERPROFILE="))
	at := bytes.LastIndex(printed, name)
	if err != nil || at < 0 {
		return "", false
	}
	value := printed[at+len(name):]
	for i := 0; i+1 < len(value); i += 2 {
		if value[i+1] == 0 && (value[i] == '\r' || value[i] == '\n') {
			text, err := wide.NewDecoder().Bytes(value[:i])
			return string(text), err == nil && len(text) > 0
		}
	}
	return "", false
}
