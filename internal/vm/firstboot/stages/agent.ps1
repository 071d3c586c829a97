    Install-Package $swdtAgentFile @()
