package commandline

// PowerShell is the path of Windows PowerShell. A HostProcess container names it by this path, since its image may
// replace PATH.
const PowerShell = `C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`
