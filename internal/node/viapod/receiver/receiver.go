// Package receiver has the script with which a node receives swdt's agent through exec.
package receiver

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/powershell"
)

// The exit codes of the script: EndedEarly if its stdin ended before the agent's end, DiskFull if the disk of the file
// is full, or the quota of its user. Any other failure is 1.
const (
	EndedEarly = 86
	DiskFull   = 87
)

// Script returns the script that writes size bytes of its stdin to a new file and prints their SHA-256. Its
// variables are set without the prologue of other scripts, since the script travels in the URL of a request,
// which proxies limit.
func Script(path string, size int64) string {
	return fmt.Sprintf("$path = '%s'; $left = %d\n", path, size) + body()
}

// body is the script after its first line. The hash is of a class that Windows also allows in its FIPS mode. The numbers
// are the HRESULTs of ERROR_DISK_FULL, ERROR_HANDLE_DISK_FULL and ERROR_DISK_QUOTA_EXCEEDED, which .NET's IOException
// has, below the exception that PowerShell makes of it.
func body() string {
	return fmt.Sprintf(`$ErrorActionPreference = 'Stop'
trap {
  [Console]::Error.WriteLine("$_")
  if ($_.Exception.GetBaseException().HResult -in -2147024784, -2147024857, -2147023601) { exit %d }
  exit 1
}
Get-ChildItem -LiteralPath (Split-Path $path) -Filter 'swdt-agent-*.exe' | Where-Object {
  $_.LastWriteTimeUtc -lt [DateTime]::UtcNow.AddDays(-1) } | Remove-Item -Force -ErrorAction SilentlyContinue
$in = [Console]::OpenStandardInput()
$file = New-Object IO.FileStream $path, 'CreateNew', 'ReadWrite', 'None'
$buffer = New-Object byte[] 1048576
while ($left -gt 0) {
  $n = $in.Read($buffer, 0, [Math]::Min($buffer.Length, $left))
  if ($n -le 0) { $file.Dispose(); exit %d }
  $file.Write($buffer, 0, $n); $left -= $n
}
$file.Flush($true); $file.Position = 0
$hash = New-Object Security.Cryptography.SHA256CryptoServiceProvider
[Console]::WriteLine([BitConverter]::ToString($hash.ComputeHash($file)).Replace('-', ''))
$file.Dispose(); exit 0
`, DiskFull, EndedEarly)
}

// Received returns the path and the size of the file that a command receives, if the command runs this
// script. Stand-ins for a node use it in place of PowerShell.
func Received(command []string) (path string, size int64, ok bool) {
	if len(command) < 2 || command[0] != powershell.Program && command[0] != commandline.PowerShell {
		return "", 0, false
	}
	script, err := powershell.Decode(command[len(command)-1])
	head, hasBody := strings.CutSuffix(script, body())
	if err != nil || !hasBody {
		return "", 0, false
	}
	found := regexp.MustCompile(`^\$path = '([^']+)'; \$left = (\d+)\n$`).FindStringSubmatch(head)
	if found == nil {
		return "", 0, false
	}
	size, err = strconv.ParseInt(found[2], 10, 64)
	return found[1], size, err == nil
}
