package carrier

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// StagedPattern matches the names of StagedName, for PowerShell.
const StagedPattern = stagedPrefix + "*" + stagedSuffix

const (
	stagedPrefix, stagedSuffix = "swdt-agent-", ".exe"
	// staleAfter is the age from which a staged agent is the remainder of a lost connection or of a
	// program that was killed.
	staleAfter = 24 * time.Hour
)

// StagedName returns a new name for the file of an agent that waits for its installation. The name has no
// character that a shell interprets.
func StagedName() string { return stagedPrefix + strings.ToLower(rand.Text()) + stagedSuffix }

// StaleStaged returns the names of the staged agents among the files of a folder that no program waits for any
// longer. It measures their age against the newest file of the folder and not against a clock, so that a wrong
// clock does not make a way remove an agent too early.
func StaleStaged(folder []fs.FileInfo) []string {
	var newest time.Time
	for _, each := range folder {
		if each.ModTime().After(newest) {
			newest = each.ModTime()
		}
	}
	var names []string
	for _, each := range folder {
		if IsStaged(each) && newest.Sub(each.ModTime()) > staleAfter {
			names = append(names, each.Name())
		}
	}
	return names
}

// IsStaged reports whether a file has a name of StagedName.
func IsStaged(file fs.FileInfo) bool {
	random, ours := strings.CutPrefix(file.Name(), stagedPrefix)
	random, exe := strings.CutSuffix(random, stagedSuffix)
	return ours && exe && len(random) == len(rand.Text()) && file.Mode().IsRegular()
}

// DiskFullError reports that the agent does not fit on the node's disk.
type DiskFullError struct {
	Path string // the file on the node that did not fit
	Size int64  // of the agent, in bytes
	Err  error
}

func (e *DiskFullError) Error() string {
	return fmt.Sprintf("put the agent (%.1f MB) on the node as %s: the node's disk is full (%v); free some space on its drive %.2s",
		float64(e.Size)/1e6, e.Path, e.Err, e.Path)
}
func (e *DiskFullError) Unwrap() error { return e.Err }
