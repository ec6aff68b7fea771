"""Rules that deny a command: every everyday spelling of it is caught, and what only looks like one is free."""

from __future__ import annotations

import shlex

from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.permissions.policy import ALLOW, DENY, Policy, judge_call
from tests.helpers import each

PUSH = "Bash(git push:*)"

SAME = (
    # options before the verb, with their values
    *("git push", "git push origin main", "git  push", "git -C d push", "git -C d -c a=b push"),
    *("git -c a=b push -f", "git --no-pager push", "git --git-dir=x/.git push", "git --git-dir x/.git push"),
    *("git -p push", "git -P push", "git --work-tree x --git-dir y push", "git --exec-path=/x push"),
    *("git --namespace n push", "git --bare push", "git --unknown push", "git --unknown value push", "git -x push"),
    *("git -x value push", "git -Cd push", 'git -C "$DIR" push', "git -C $DIR push", "git -C $(pwd) push"),
    *("git -c core.x='a b' push", "git -C 'a b' push", 'git -C "$(git rev-parse --show-toplevel)" push'),
    "git -C ../x --no-pager push -u origin HEAD",
    # words that only the running shell knows
    *('verb=push; git "$verb"', "git $verb", "git $(echo push)", "git `echo push`", "git {push,origin}", "git pu*h"),
    *("git pus?", "git pus[h]", 'git "${verb}"', "git ${verb}", "git pu$x", 'git "pu$x"', "git $x$y"),
    *("git ${x:-push}", 'git "$@"', 'g() { git "$@"; }; g push', "for v in push; do git $v; done"),
    *("git $OPTIONS push", "git $OPTIONS", 'git --no-pager "$verb"', "git -C d $verb", 'git -C d "$verb"'),
    *("git $(cat verb) origin", "git p{ush,}", "git {pu,}sh", "git $((1))", "read v; git $v", "set -- push; git $1"),
    *('a=(push); git "${a[@]}"', "git $'pu'$x"),
    # quotes and escapes
    *('gi""t push', "g''it pu''sh", "'git' 'push'", '"git" "push"', "\\git push", "g\\it pu\\sh", "git $'push'"),
    *("$'git' push", "$'\\x67it' push", 'git $"push"', "git \\\n  push", "git pu\\\nsh", "git -C \\\n d \\\n push"),
    # the program under another name
    *("/usr/bin/git push", "./git push", "~/bin/git push", "../bin/git push", "GIT push", "Git push"),
    *("git.exe push", "/mnt/c/Git/git.exe push", "git-push", "/usr/lib/git-core/git-push origin", "$GIT push"),
    *('"$GIT" push', "`which git` push", "$(which git) push", "$(command -v git) push", "g=git; $g push"),
    *("git${IFS}push", "alias g=git; g push", "alias p='git push'; p", "alias g='git -C d'\ng push"),
    *("alias x='git'; x -C d push", "git -c alias.x=push x", "git config alias.x push; git x"),
    *("git -c alias.x='!git push' x", "f() { git push; }; f", "function f { git -C x push; }; f"),
    # builtins
    *("command git push", "builtin command git push", "exec git push", "exec -a x git push", "eval git push"),
    *("eval 'git push'", 'eval "git -C d push"', "eval git -C d push", "time git push", "time -p git push"),
    *("trap 'git push' EXIT", "coproc git push", "! git push", "{ git push; }", "(git push)", "git push &"),
    *("if git push; then :; fi", "while ! git -C d push; do :; done", "true && git push", "false || git push"),
    *("echo $(git push)", "echo `git -C d push`", "cat <(git push)", "X=1 git push", "A=1 B=2 git -C d push"),
    *("case x in x) git push;; esac", "until git push; do :; done", "x=$(git push)", "git status; git push"),
    *("git add . && git commit -m x && git push", "git push 2>&1 | tail", "git push > log", "echo y | git push"),
    # shells
    *("bash -c 'git push'", "sh -c 'git push'", "bash -lc 'git -C d push'", "sh -ec 'cd d; git push'"),
    *("zsh -c 'git push'", 'bash -c "git push"', "bash -o pipefail -c 'git push'", "bash <<< 'git push'"),
    *("bash <<X\ngit push\nX", "sh <<'X'\ngit -C d push\nX", "bash -s <<X\ngit push\nX", "echo 'git push' | sh"),
    *("printf 'git push' | bash -s", 'bash -c \'git "$1"\' _ push', 'bash -c "$CMD"', "env bash -c 'git push'"),
    *('sh -c \'sh -c "git push"\'', "source <(echo git push)", ". /dev/stdin <<< 'git push'", "base64 -d x | sh"),
    *("fish -c 'git push'", "pwsh -c 'git push'", "/bin/sh -c 'git push'", "bash -xc 'git push'"),
    "dash -c 'git --no-pager push'",
    # runners that only run
    *("env git push", "env A=b git push", "env -u X git push", "env -i PATH=x git push", "env -S 'git push'"),
    *("env -S'git push'", "env --split-string='git -C d push'", "env -C d git push", "/usr/bin/env git push"),
    *("timeout 5 git push", "timeout -k 1 5s git push", "timeout --signal=KILL 5 git push", "nice git push"),
    *("nice -n 3 git push", "nice -3 git push", "ionice -c 3 git push", "nohup git push", "setsid git push"),
    *("setsid -w git push", "stdbuf -oL git push", "stdbuf -o L git push", "strace -f git push"),
    *("strace -o x git push", "sudo git push", "sudo -u x git push", "sudo -E -u x -- git push", "doas git push"),
    *("doas -u x git push", "xargs git push", "echo push | xargs git", "xargs -n1 git", "xargs -I{} git {}"),
    *("xargs -I% git % x", "echo push | xargs -I {} git {} origin", "xargs git -C d push", "xargs -0 -n 1 git"),
    *("xargs sh -c 'git push'", "watch git push", "watch -n 5 'git push'", "watch -n5 git -C d push"),
    *("parallel git push ::: a", "parallel git ::: push", "parallel 'git {}' ::: push"),
    *("find . -name .git -exec git push \\;", "find . -exec git -C {} push \\;", "find . -execdir git push +"),
    *('find . -type d -exec sh -c \'git -C "$1" push\' _ {} \\;', "fd -x git push", "flock x git push"),
    *("flock x -c 'git push'", "flock -n x git -C d push", "chroot d git push", "unshare -r git push"),
    *("busybox sh -c 'git push'", "script -c 'git push' x", "script -qc 'git -C d push' /dev/null"),
    *("chrt 1 git push", "unbuffer git push", "taskset 1 git push", "nsenter -t 1 git push", "systemd-run git push"),
    *("su x -c 'git push'", "su - x -c 'cd d && git push'", "runuser -u x -- git push", "pkexec git push"),
    *("gosu x git push", "hyperfine 'git push'", "hyperfine 'git -C d push'", "concurrently 'git push' 'x'"),
    *("tmux new -d 'git push'", "tmux new -d git push", "tmux send-keys 'git push' Enter", "screen -dm git push"),
    *("entr git push", "valgrind git push", "caffeinate git push", "arch -x86_64 git push", "xvfb-run git push"),
    *("watchexec git push", "firejail git push", "time nice -n 3 timeout 5 env A=b git -C d push"),
    *("sudo env A=b bash -c 'git push'", "nohup sh -c 'git push' &"),
    # runners by a verb
    *("uv run git push", "uv run --with x git push", "uv run -- git push", "uv --directory d run git -C e push"),
    *("uv run --no-sync git push", "uvx git push", "uv tool run git push", "poetry run git push"),
    *("poetry -C d run git push", "pipenv run git push", "hatch run git push", "rye run git push"),
    *("pdm run git push", "pixi run git push", "conda run -n x git push", "mise x -- git push"),
    *("mise x node@20 -- git push", "mise exec -- git push", "mise exec node git push", "asdf exec git push"),
    *("rbenv exec git push", "bundle exec git push", "npx git push", "npx -y git push", "npx --yes -- git push"),
    *("npx -c 'git push'", "npm exec -- git push", "npm exec -c 'git push'", "npm x -- git push"),
    *("pnpm exec git push", "pnpm dlx git push", "pnpm git push", "yarn git push", "yarn run git push"),
    *("yarn exec git push", "bunx git push", "bun x git push", "bun run git push", "just --command git push"),
    *("direnv exec . git push", "direnv exec d git -C e push", "nix run nixpkgs#git -- push; git push"),
    *("nix shell -c git push", "nix develop --command git push", "nix develop -c git -C d push"),
    *("nix-shell --run 'git push'", "nix run x -- git push", "docker exec c git push", "docker exec -it c git push"),
    *("docker exec -w /d c git -C e push", "docker run i git push", "docker run --rm -it -v a:b i git push"),
    *("docker compose exec s git push", "docker compose run --rm s git push", "docker exec c sh -c 'git push'"),
    *("podman exec c git push", "kubectl exec p -- git push", "kubectl -n n exec p -c c -- git push"),
    *("docker-compose exec s git push", "ssh h git push", "ssh h 'git push'", "ssh -p 22 u@h git push"),
    *("ssh h 'cd d && git -C e push'", "ssh -o A=b h -- git push", "vagrant ssh -c 'git push'"),
    *("git submodule foreach 'git push'", "git submodule foreach git push"),
    *("git submodule foreach --recursive 'git push || :'", "git rebase -x 'git push' main"),
    *("git rebase --exec='git push' main", "git bisect run git push", "op run -- git push"),
    *("doppler run -- git push", "aws-vault exec p -- git push", "heroku run git push"),
    *("systemd-run --user git push", "sudo uv run git push", "timeout 5 npx git push"),
    *("env A=b docker exec c git push", "sudo ssh h git push", "wsl git push", "cmd.exe /c git push"),
    *("nix run nixpkgs#git -- push", "nix run nixpkgs#git -- -C d push", "docker run alpine/git push"),
    *("cross-env A=b git push", "docker run --rm alpine/git:2.4 -C /d push", "sudo -s <<X\ngit push\nX"),
    "at now <<< 'git push'",
    # kept for later
    *("GIT_PAGER='git push' git log", "export GIT_PAGER='git push'; git log", "PS4='$(git push)' bash -xc :"),
    *("tar --to-command='git push' -xf x", "rsync --rsh='git -C d push' a b:", "X='cd d; git push' make"),
    # code
    'python -c \'import os; os.system("git push")\'',
    'python3 -c \'import subprocess as s; s.run(["git", "push"])\'',
    'python3.11 -c \'import subprocess; subprocess.run(["git","-C","d","push"])\'',
    *('perl -e \'system("git push")\'', 'ruby -e \'exec "git", "push"\'', "ruby -e '`git push`'"),
    *('node -e \'require("child_process").execSync("git push")\'', 'awk \'BEGIN{system("git push")}\''),
    *('php -r \'shell_exec("git push");\'', "python - <<X\nimport os\nos.system('git push')\nX"),
    *("perl -e 'print `git push`'", 'uv run python -c \'import os; os.system("git push")\''),
    "uv run python - <<X\nimport os; os.system('git push')\nX",
    *("sed '1e git push' f", "sed -n '/x/e git push' f", "sed 's/.*/git push/e' f", "sed -e p -e 's|x|git push|ge' f"),
    *("uv run - <<X\nimport os; os.system('git push')\nX", "chronic git push", "retry -t 3 -- git push"),
    *("ssh-agent bash -c 'git push'", "gdb --args git push", "xterm -e git push", "run0 git push", "srun git push"),
    *("flatpak-spawn --host git push", "apptainer exec i git push", "gcloud compute ssh h --command='git push'"),
    # what nobody can read
    *("git push '", "$(", 'git "push'),
)  # fmt: skip

FREE = (
    *("git", "git status", "git log --grep push", "git log --grep=push", 'git commit -m "push later"'),
    *("git commit -m push", "git -C d status", "git -C d log push", "git -c a=b commit -m 'git push'"),
    *("git --no-pager log --grep push", "git --no-pager diff push", "git stash push", "git stash push -m x"),
    *("git stash -p", "git -C d stash push", "git fetch origin push", "git branch push", "git checkout push"),
    *("git switch -c push", "git tag push", "git pull", "git subtree push", "git config push.default simple"),
    *("git -c push.default=simple pull", "git remote -v", "git add push", "git add -- push", "git show push"),
    *("git grep push", "git log -- push", "git diff HEAD~1 push", "git rebase origin/main", "git log $X"),
    *("git commit --message='git push'", "T='Do git push' make", "gh pr create --title='git push' --body='git push'"),
    *('git commit -m "$MSG"', 'git commit -m "$(cat <<E\ngit push\nE\n)"', 'git -C "$DIR" status'),
    *("git -C $DIR status", "git -C $(pwd) log", 'git -C "$(git rev-parse --show-toplevel)" diff'),
    *('git --git-dir "$D" status', "git add *.py", "git log HEAD@{1}", "git show HEAD^{commit}", "git diff -- *.py"),
    *("git rm x{1,2}", "git log --format='%H $x'", "git log '$verb'", 'git log "\\$verb"', "git checkout $BRANCH"),
    *("git show stash@{0}", "git diff $A..$B push", "git mv a push", "git ls-files push", "git lfs push"),
    *("git help push", "man git push", "echo git push", "printf 'git push'", "grep 'git push' README.md"),
    *("rg 'git push'", "ls git push", "cat git push", "echo 'git push' > x", "cat <<X\ngit push\nX"),
    *('echo "git push" >> notes', "gitk push", "git-lfs push", "hg push", "docker push x", "npm push"),
    *("gh repo push", "pushd git", "which git push", "agent-mailbox send --to x --body 'git push'"),
    *("agent-mailbox send --to x --subject git --body push", "# git push", "uv run pytest tests/git push"),
    *("uv run pytest -k push", "npx eslint git", "poetry run python push.py", "npm run push", "make push"),
    *("just push", "docker run i echo git push", "docker exec c ls git push", "ssh h ls", "ssh git ls push"),
    *("xargs git add", "xargs git -C d log", "ls | xargs grep push", "find . -name push"),
    *("find . -name push -exec git log {} \\;", "timeout 5 git status", "sudo git status", "env A=b git log push"),
    *("nice -n 3 git fetch", "watch git status", "bash -c 'git status'", "bash push.sh", "sh -c 'echo git push'"),
    *("bash <<X\ngit status\nX", "eval 'git status'", 'python -c \'print("git push")\'', "python -m git_push"),
    *("python git push", "node push.js", "python3 -m pytest -k push"),
    *('python -c \'import os; os.system("git status")\'', "perl -ne 'print if /push/' git"),
    *("sed -i 's/git push/x/' f", "sed 's/x/git push/' e", "sed 's/the git push/one/' f"),
    *("for f in *; do echo $f; done", "if [ -d .git ]; then git status; fi", "[ push ]"),
    *("test -f git", "cd git && ls push", "x=push; git log", "git=push; echo $git", "alias g=git; g status"),
    *("alias p='git pull'; p", "g() { git status; }; g", "git -c alias.x=log x", "git config alias.x status"),
    *("git submodule foreach 'git status'", "git bisect run make push", "git rebase -x 'make push' main"),
    *("docker compose run s git status", "mise x -- git status", "direnv exec . git log push"),
    *("ls | xargs", "find", "fd", "parallel < push", "x=$(echo git push | xargs)"),
    *("cat push | git apply", "git apply < push", "git log > push", "git log 2> push", "tmux ls", "time git log"),
)  # fmt: skip


def denies(rule: str, command: str) -> bool:
    """Does a rule that denies catch the command?"""
    return judge_call(Policy(deny=(rule,)), "Bash", {"command": command}).decision == DENY


@each("command", SAME)
def test_every_spelling_of_a_denied_command_is_denied(command: str) -> None:
    """Options, words known only at run time, quotes, other names, shells, runners, code."""
    assert denies(PUSH, command)


@each("command", FREE)
def test_a_command_that_only_looks_like_a_denied_one_is_free(command: str) -> None:
    """Its words are another verb's, an option's value, a text, or another program's."""
    assert not denies(PUSH, command)


@each(
    "rule, command, caught",
    [
        ("kubectl delete:*", "kubectl -n prod delete pod x", True),
        ("kubectl delete:*", "kubectl --context=p --namespace n delete -f x", True),
        ("kubectl delete:*", "kubectl get pods delete", False),
        ("kubectl delete:*", 'kubectl -n "$NS" get pods', False),
        ("kubectl delete:*", "kubectl -n $NS delete pods", True),
        ("terraform apply:*", "terraform -chdir=x apply", True),
        ("terraform apply:*", "terraform -chdir=x plan -out apply", False),
        ("terraform apply -auto-approve:*", "terraform apply --auto-approve", True),
        ("terraform apply -auto-approve:*", "terraform -chdir=x apply -input=false -auto-approve", True),
        ("terraform apply -auto-approve:*", "terraform apply", False),
        ("npm publish:*", "npm --prefix p publish", True),
        ("npm publish:*", "npm --silent run publish", False),
        ("npm publish", "npm publish --access public", True),
        ("npm publish", "npm publish dir", False),
        ("npm publish:*", "npx npm@latest publish", True),
        ("twine upload:*", "uvx --from twine twine upload dist/x", True),
        ("twine upload:*", "pipx run twine@5 upload dist/x", True),
        ("twine upload:*", "python -m twine upload dist/x", True),
        ("npm publish:*", "corepack npm publish", True),
        ("npm publish:*", "npx -p npm npm publish", True),
        ("npm run build", "npm run build:all", False),
        ("gh pr merge:*", "gh -R a/b pr merge 1", True),
        ("gh pr merge:*", "gh pr -R a/b merge 1", True),
        ("gh pr merge:*", 'gh pr -R "$REPO" view 1', False),
        ("gh pr merge:*", "gh pr view merge", False),
        ("make deploy:*", "make -C d deploy", True),
        ("make deploy:*", "make V=1 -j 4 deploy", True),
        ("make deploy:*", "make -j$(nproc) test", False),
        ("make deploy:*", 'make -j "$(nproc)" test', False),
        ("make deploy:*", 'make -j "$(nproc)" deploy', True),
        ("make deploy", "make -C d deploy", True),
        ("make deploy", "make deploy V=1", True),
        ("make deploy", "make deploy test", False),
        ("make deploy:*", "make clean build -j4 deploy", True),
        ("make deploy:*", "make clean build", False),
        ("make deploy:*", "make -C deploy test TARGET=deploy", False),
        ("mvn deploy:*", "mvn -q clean deploy", True),
        ("gradle publish:*", "gradle build publish", True),
        ("npm publish:*", "npm --prefix p pub", True),
        ("npm publish:*", "npm pack", False),
        ("kubectl delete:*", "minikube kubectl -- delete pod x", True),
        ("kubectl delete:*", "microk8s kubectl -n x delete pod y", True),
        ("terraform apply:*", "sops exec-env f 'terraform apply'", True),
        ("docker push:*", "docker --context x push i", True),
        ("docker push:*", "docker image push i", False),
        ("docker compose down:*", "docker compose -f x.yml -p y down", True),
        ("docker compose down:*", "docker-compose -f x.yml down", True),
        ("docker-compose down:*", "docker compose down", True),
        ("cargo publish:*", "cargo +nightly publish", True),
        ("aws s3 rm:*", 'aws --profile "$P" s3 rm s3://x', True),
        ("aws s3 rm:*", 'aws --profile "$P" s3 ls', False),
        ("pip install:*", "python3 -m pip install x", True),
        ("pip install:*", "uv pip install x", False),
        ("pip install:*", "python -m pip --quiet install x", True),
        ("pip install:*", "python -m pip list", False),
        ("rm -rf:*", "rm -fr x", True),
        ("rm -rf:*", "rm -r -f x", True),
        ("rm -rf:*", "rm -f -r x", True),
        ("rm -rf:*", "rm -Rf x", True),
        ("rm -rf:*", "rm -rvf x", True),
        ("rm -rf:*", "rm --recursive --force x", True),
        ("rm -rf:*", "rm --rec -f x", True),
        ("rm -rf:*", "rm x -rf", True),
        ("rm -rf:*", "rm -r x -f", True),
        ("rm -rf:*", "sudo /bin/rm -v -fr x", True),
        ("rm -rf:*", "rm $FLAGS x", True),
        ("rm -rf:*", "rm -v $FLAGS x", True),
        ("rm -rf:*", "rm -r x", False),
        ("rm -rf:*", "rm -{r,f} x", True),
        ("rm -rf:*", "rm -r$F x", True),
        ("rm -rf:*", "toybox rm -rf x", True),
        ("rm -rf:*", 'rm -- "$f"', False),
        ("rm -rf:*", "find . -name '*.pyc' -exec rm {} \\;", False),
        ("rm -rf:*", "find $X -exec rm {} \\;", True),
        ("rm -rf:*", "find -exec rm {} \\;", True),
        ("rm -rf:*", "rm -f x", False),
        ("rm -rf:*", 'rm -f "$tmp"', False),
        ("rm -rf:*", 'rm "$dir/x"', False),
        ("rm -rf:*", "find . | xargs rm -f", False),
        ("rm -rf:*", "find . | xargs rm", False),
        ("rm -rf:*", "find . | xargs rm -rf", True),
        ("rm -rf:*", "find . -exec rm -fr {} +", True),
        ("rm --recursive --force:*", "rm -rf x", True),
        ("rm -r:*", "rm -rf x", True),
        ("rm -r:*", "rm --recursive x", True),
        ("rm:*", "busybox rm x", True),
        ("rm:*", "docker rm x", False),
        ("rm:*", "docker run --rm i ls", False),
        ("rm:*", "git rm x", False),
        ("rm:*", "yarn rm x", False),
        ("rm:*", "npm rm x", False),
        ("rm:*", "rmdir x", False),
        ("git push --force:*", "git push -f", True),
        ("git push --force:*", "git push origin main --force", True),
        ("git push --force:*", "git -C d push origin -uf", True),
        ("git push --force:*", "git push --force-with-lease", False),
        ("git push --force:*", "git push origin main", False),
        ("git push --force:*", 'git push origin "$BRANCH"', False),
        ("git push -f:*", "git push --force", True),
        ("git push --delete:*", "git push origin -d x", True),
        ("git reset --hard:*", "git -C d reset HEAD~1 --hard", True),
        ("git reset --hard:*", "git reset --soft HEAD~1", False),
        ("git branch -D:*", "git branch --delete x", True),
        ("git clean -fd:*", "git clean -d -x -f", True),
        ("curl -X POST:*", "curl -s -X POST http://x", True),
        ("curl -X POST:*", "curl http://x", False),
        ("find * -delete", "find . -name x -delete", True),
        ("find -exec:*", "find . -xdev -empty -ctime 1", False),
        ("git * main", "git -C d push origin main", True),
        ("* install", "npm --prefix p install", True),
        ("ls*", "lsof", True),
        ("ls", "ls -la", True),
        ("ls", "ls x", False),
        ("./deploy.sh:*", "bash deploy.sh prod", True),
        ("./deploy.sh:*", "bash -x ./deploy.sh", True),
        ("./deploy.sh:*", "/p/deploy.sh", True),
        ("./deploy.sh:*", "cat deploy.sh", False),
        ("sudo:*", "timeout 5 sudo ls", True),
        ("docker run:*", "docker --debug run i", True),
        ("systemctl stop:*", "systemctl --user stop x", True),
        ("systemctl stop:*", "sudo systemctl -q stop x", True),
        ("chmod -R:*", "chmod --recursive 777 x", True),
        ("chmod -R:*", "chmod 777 x", False),
        ("apt install:*", "sudo apt -y install x", True),
        ("helm uninstall:*", "helm -n x uninstall y", True),
        ("go generate:*", "go -C d generate ./...", True),
    ],
)
def test_other_rules_catch_the_spellings_of_their_commands(rule: str, command: str, caught: bool) -> None:
    """Verbs behind options, clusters and long spellings of options, and rules without a star."""
    assert denies(f"Bash({rule})", command) is caught


def test_a_denial_of_what_is_unsure_says_what_to_write() -> None:
    """The word that only the running shell knows, or why nobody can read it."""
    reason = judge_call(Policy(deny=(PUSH,)), "Bash", {"command": 'git -C d "$verb"'}).reason
    assert reason.endswith("and this may be one ($verb is known only when it runs: write it out)")
    reason = judge_call(Policy(deny=(PUSH,)), "Bash", {"command": "$x push"}).reason
    assert reason.endswith("and this may be one (what runs is known only at run time: write it plainly)")
    assert judge_call(Policy(deny=(PUSH,)), "Bash", {"command": "git -C d push"}).reason.endswith(f'denies "{PUSH}"')


PLAIN = (
    *("git push", "git push origin main", "git  push", 'gi""t push', "g''it pu''sh", "'git' 'push'", '"git" "push"'),
    *("\\git push", "g\\it pu\\sh", "git $'push'", "$'git' push", "$'\\x67it' push", 'git $"push"'),
    *("git \\\n  push", "git pu\\\nsh", "command git push", "builtin command git push", "time git push"),
    *("time -p git push", "(git push)", "coproc git push", "! git push", "git push &", "nohup git push"),
)  # fmt: skip


@each("command", SAME)
def test_a_rule_that_allows_stays_strict(command: str) -> None:
    """It allows the command as it is written in the rule, and no other spelling."""
    allowed = judge_call(Policy(allow=(PUSH,)), "Bash", {"command": command}).decision == ALLOW
    assert allowed is (command in PLAIN)


options = st.lists(
    st.sampled_from(["-C d", "--no-pager", "-c a=b", "--git-dir=x", "-x", "--any value", "-C 'a b'", '-C "$D"', "A=b"]),
    max_size=4,
)
rules_denied = st.sampled_from(["git push", "kubectl delete", "npm publish", "gh pr merge", "make deploy"])
runners = st.lists(
    st.sampled_from(["sudo -u x", "timeout 5", "env A=b", "nice -n 3", "uv run", "mise x --", "npx", "xargs", "time"]),
    max_size=2,
)


@given(rules_denied, st.lists(options, min_size=4, max_size=4), runners)
def test_options_between_the_words_of_a_denied_command_never_free_it(
    rule: str, between: list[list[str]], around: list[str]
) -> None:
    """However many, with values or without; nor do runners before it, nor a shell around it."""
    words = rule.split()
    parts = [part for word, more in zip(words, between, strict=False) for part in (word, *more)]
    command = " ".join([*around, *parts, "x"])
    assert denies(f"Bash({rule}:*)", command)
    assert denies(f"Bash({rule}:*)", f"bash -c {shlex.quote(command)}")
