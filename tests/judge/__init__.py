"""The rules of the mailbox a second time, small and slow, from the texts alone: nothing here knows the product.

They were written before their author had read a line of the core, so that one mistake is not made twice.
"""
