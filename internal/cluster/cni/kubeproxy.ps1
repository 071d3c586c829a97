# Starts kube-proxy in a HostProcess pod of swdt, with the image's kube-proxy.exe or that of the node.
# Needs NODE_NAME and KUBE_NETWORK, the name of the HNS network of the pods.
$ErrorActionPreference = 'Stop'
$root = $env:CONTAINER_SANDBOX_MOUNT_POINT
$network = $env:KUBE_NETWORK
$kubeconfig = Join-Path $PSScriptRoot 'kubeconfig.conf'

# An image may have the program at one of these places; the last one is that of a node that swdt has joined.
$places = @(
    (Join-Path $root 'kube-proxy\kube-proxy.exe'),
    (Join-Path $root 'k\kube-proxy.exe'),
    (Join-Path $root 'kube-proxy.exe'),
    'C:\k\kube-proxy.exe'
)
$program = $places | Where-Object { Test-Path $_ } | Select-Object -First 1
if (-not $program) {
    throw "find kube-proxy.exe: it is at none of $($places -join ', '); name an image that has it with --kube-proxy-image, or push it to C:\k\kube-proxy.exe"
}

# Windows has the module with the containers feature; the published images have their own.
if (-not (Get-Command Get-HnsNetwork -ErrorAction SilentlyContinue)) {
    Import-Module (Join-Path $root 'kube-proxy\hns.psm1')
}

function Wait-ForHns([string] $what, [scriptblock] $look) {
    $said = $false
    while ($true) {
        $found = & $look
        if ($found) { return $found }
        if (-not $said) { Write-Host "waiting for the HNS $what, which the pod network creates"; $said = $true }
        Start-Sleep -Seconds 1
    }
}

# An address of the pods' range that no pod has, from the plug-in that assigns them.
function Get-ReservedAddress([string] $subnet) {
    $env:CNI_COMMAND, $env:CNI_CONTAINERID, $env:CNI_NETNS = 'ADD', 'kube-proxy', 'kube-proxy'
    $env:CNI_IFNAME, $env:CNI_PATH = 'source-vip', 'C:\opt\cni\bin'
    $kept = 'C:\var\lib\swdt-kube-proxy\source-vip.txt'
    if (Test-Path $kept) {
        $fields = (Get-Content $kept -First 1).Trim() -split ' '
        if ($fields[0] -eq $subnet) { return $fields[1] }
    }
    $request = @{ cniVersion = '0.3.0'; name = $network; ipam = @{ type = 'host-local'
        ranges = @(, @(@{ subnet = $subnet })); dataDir = '/var/lib/cni/networks' } } | ConvertTo-Json -Depth 6 -Compress
    $reply = $request | & 'C:\opt\cni\bin\host-local.exe'
    if ($LASTEXITCODE -ne 0) { throw "reserve an address for kube-proxy: host-local.exe ended with exit code ${LASTEXITCODE}: $reply" }
    $address = (($reply | Out-String | ConvertFrom-Json).ips[0].address -split '/')[0]
    New-Item -ItemType Directory -Force (Split-Path $kept) | Out-Null
    Set-Content $kept "$subnet $address"
    return $address
}

$arguments = @('--v=2', '--proxy-mode=kernelspace', "--hostname-override=$env:NODE_NAME", "--kubeconfig=$kubeconfig",
    "--network-name=$network")

# Up to 1.32 direct server return needs a feature gate, which later versions refuse. HNS has it since 17763.1554.
$version = & $program --version
$windows = Get-ItemProperty 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion'
$build = [int] $windows.CurrentBuildNumber
$serves = ($build -gt 17763) -or (($build -eq 17763) -and ([int] $windows.UBR -ge 1554))
$gated = ($version -match 'v1\.(\d+)\.') -and ([int] $Matches[1] -lt 33)
if ($serves -and (-not $gated)) { $arguments += '--enable-dsr=true' }

$hns = Wait-ForHns "network $network" { Get-HnsNetwork | Where-Object { $_.Name -eq $network } | Select-Object -First 1 }
if ($hns.Type -eq 'Overlay') {
    if ($network -eq 'Calico') {
        $endpoint = Wait-ForHns 'endpoint Calico_ep' { Get-HnsEndpoint | Where-Object { $_.Name -eq 'Calico_ep' } | Select-Object -First 1 }
        $arguments += "--source-vip=$($endpoint.IPAddress)"
    } else {
        $arguments += "--source-vip=$(Get-ReservedAddress $hns.Subnets[0].AddressPrefix)"
    }
}

Write-Host "starting $program $($arguments -join ' ')"
& $program @arguments
exit $LASTEXITCODE
