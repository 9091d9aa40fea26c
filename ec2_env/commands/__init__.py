"""The commands of `ec2-env`: one file each, and the name of the file is the name of the command."""
