    Set-Service -Name 'sshd' -StartupType Automatic
    Invoke-Program 'sc.exe' @('failure', 'sshd', 'reset=', '86400', 'actions=', 'restart/15000/restart/15000/restart/60000')
    $service = Get-Service -Name 'sshd'
    if ($service.Status -ne 'Running') { $service.Start() }
    $service.WaitForStatus('Running', [TimeSpan]::FromSeconds(120))
