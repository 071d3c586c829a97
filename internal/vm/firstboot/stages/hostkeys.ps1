    # sshd makes new ones at its next start, other ones for each machine of the image.
    $service = Get-Service -Name 'sshd'
    if ($service.Status -ne 'Stopped') { $service.Stop() }
    $service.WaitForStatus('Stopped', [TimeSpan]::FromSeconds(60))
    $pattern = Join-Path $env:ProgramData 'ssh\ssh_host_*'
    Get-ChildItem -Path $pattern -Force | Remove-Item -Force
    if (@(Get-ChildItem -Path $pattern -Force).Count -gt 0) { throw 'some host keys are left' }
