[System.Net.ServicePointManager]::SecurityProtocol = [System.Net.SecurityProtocolType]::Tls12
try { [System.Net.ServicePointManager]::SecurityProtocol = [System.Net.ServicePointManager]::SecurityProtocol -bor 12288 } catch { }
$client = New-Object System.Net.WebClient
if ($client.Proxy) { $client.Proxy.Credentials = [System.Net.CredentialCache]::DefaultNetworkCredentials }
try { $installer = $client.DownloadString('https://example.org/it''s ‘‘a’’ script.ps1?a=$(b)') }
catch { [Console]::Error.WriteLine($_.Exception.GetBaseException().Message); exit 86 }
$ErrorActionPreference = 'Continue'
Invoke-Expression $installer
