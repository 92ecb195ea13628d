module_path=(/tmp/h/zsh/root/usr/lib/x86_64-linux-gnu/zsh/5.9)
autoload -Uz compinit; compinit -u -D; source ./_qsp; PS1='> '
