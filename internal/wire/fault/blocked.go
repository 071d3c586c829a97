package fault

import "strings"

// BlockedRemedy returns the remedy for a program that Windows refuses to run or to open: the question about the cause,
// and a command.
func BlockedRemedy(path string) string {
	// PowerShell ends a string at a typographic quote too.
	quoted := strings.NewReplacer("'", "''", "‘", "‘‘", "’", "’’", "‚", "‚‚", "‛", "‛‛").Replace(path)
	return BlockedQuestion + ExclusionCommand + "'" + quoted + "'"
}

const (
	// BlockedQuestion asks for the cause of a refusal; ExclusionCommand and its argument follow.
	BlockedQuestion = "does AppLocker, an application control policy or an antivirus block it? On the node: "
	// ExclusionCommand is the PowerShell command that makes Microsoft Defender ignore the paths that follow.
	ExclusionCommand = "Add-MpPreference -ExclusionPath "
)
